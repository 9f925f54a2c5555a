//! math.zig: functions of math.h that are in Zig's standard library, but not in its support for compiled code.
//! Linked into programs that call one of them, if the compiler is Zig.

const std = @import("std");
const math = std.math;

pub const panic = std.debug.no_panic;

fn One(comptime T: type, comptime of: anytype) type {
    return struct {
        fn call(x: T) callconv(.c) T {
            return of(x);
        }
    };
}

fn Two(comptime T: type, comptime of: anytype) type {
    return struct {
        fn call(x: T, y: T) callconv(.c) T {
            return of(x, y);
        }
    };
}

fn Power(comptime T: type) type {
    return struct {
        fn call(x: T, y: T) callconv(.c) T {
            return math.pow(T, x, y);
        }
    };
}

/// Exported under this name. A program may define its own instead.
fn give(comptime function: anytype, comptime name: []const u8) void {
    @export(function, .{ .name = name, .linkage = .weak, .visibility = .hidden });
}

comptime {
    for (.{ .{ f64, "" }, .{ f32, "f" } }) |each| {
        const T = each[0];
        give(&One(T, math.asin).call, "asin" ++ each[1]);
        give(&One(T, math.acos).call, "acos" ++ each[1]);
        give(&One(T, math.atan).call, "atan" ++ each[1]);
        give(&One(T, math.sinh).call, "sinh" ++ each[1]);
        give(&One(T, math.cosh).call, "cosh" ++ each[1]);
        give(&One(T, math.tanh).call, "tanh" ++ each[1]);
        give(&One(T, math.asinh).call, "asinh" ++ each[1]);
        give(&One(T, math.acosh).call, "acosh" ++ each[1]);
        give(&One(T, math.atanh).call, "atanh" ++ each[1]);
        give(&One(T, math.expm1).call, "expm1" ++ each[1]);
        give(&One(T, math.log1p).call, "log1p" ++ each[1]);
        give(&One(T, math.cbrt).call, "cbrt" ++ each[1]);
        give(&Two(T, math.atan2).call, "atan2" ++ each[1]);
        give(&Two(T, math.hypot).call, "hypot" ++ each[1]);
        give(&Power(T).call, "pow" ++ each[1]);
    }
}
