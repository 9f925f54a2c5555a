"""The conditions of a measurement that differ from the defaults, as reports and pictures name them, and its drops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicety.shared.faults import faults_line


def circumstances(manifest: Mapping[str, Any]) -> list[str]:
    """Return words on the peer, pattern, topology, flow control, noise, faults, puts and overrides, if not default.

    Args:
        manifest: the manifest of a report. A key that is missing counts as default.
    """
    found = [f"the other hosts have card {manifest['peer']['nic']}"] if "peer" in manifest else []
    found += [f"{key} {manifest[key]}" for key in ("pattern", "topology") if manifest.get(key, "pair") != "pair"]
    found += [f"{key.replace('_', ' ')} {manifest[key]}" for key in ("flow_control", "noise") if manifest.get(key)]
    if manifest.get("faults"):
        found.append(f"faults {faults_line(manifest['faults'])}")
    if options := _of_puts(manifest.get("puts") or {}):
        found.append(f"puts with {' '.join(options)}")
    if manifest.get("overrides"):
        found.append(f"set {', '.join(manifest['overrides'])}")
    return found


def _of_puts(puts: Mapping[str, Any]) -> list[str]:
    """Return the options of puts that differ from the defaults, as on the command line."""
    named = [f"--{name}" for name in ("loopback", "flush_receive") if puts.get(name)]
    usual = {"source": "host", "sink": "host", "addressing": "virtual"}
    named += [f"--{name} {puts[name]}" for name, value in usual.items() if puts.get(name, value) != value]
    named += [f"--{puts['notify']}"] if puts.get("notify") else []
    return [option.replace("_", "-") for option in named]


_MOST = 3
"""Maximum number of ports that a line names; further ports are counted."""


def dropped(place: str, row: Mapping[str, Any]) -> list[str]:
    """Return a line with the packets that were dropped in a row's run, and the ports with most drops; empty if none."""
    ports = [port for port in row.get("ports", []) if port["dropped_packets"]]
    if not ports:
        return []
    ports.sort(key=lambda port: -port["dropped_packets"])
    named = [f"{p['dropped_packets']} at {p['at']} port {p['port']} ({p['reason']})" for p in ports[:_MOST]]
    if len(ports) > _MOST:
        named.append(f"{sum(p['dropped_packets'] for p in ports[_MOST:])} elsewhere")
    total = sum(port["dropped_packets"] for port in ports)
    return [f"# {place}: {total} packets were dropped: {', '.join(named)}"]
