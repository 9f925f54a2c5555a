//! Files of each kind and format, with distances by hand; and refused ones.

use super::*;
use proptest::prelude::*;

fn file(text: &str) -> Result<Instance, String> {
    parse(text, "f.tsp").map_err(|error| error.to_string())
}

fn with_cities(head: &str, cities: &str) -> Result<Instance, String> {
    file(&format!("{head}\nNODE_COORD_SECTION\n{cities}\nEOF\n"))
}

/// The distances of a problem, by rows.
fn rows(instance: &Instance) -> Vec<Vec<u32>> {
    instance.cities.table().rows().map(<[u32]>::to_vec).collect()
}

fn points(instance: &Instance) -> &[(u16, u16)] {
    match &instance.cities {
        Cities::Plane(points) => points,
        Cities::Table(_) => panic!("a table"),
    }
}

const HEAD: &str = "NAME : square\nTYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE : EUC_2D";
const CITIES: &str = "1 0 0\n 2 10 0\n3\t1e1 10.0\n4 0 10\n9 -5 +5";

#[test]
fn cities_are_moved_to_the_origin() {
    let read = with_cities(HEAD, CITIES).unwrap();
    assert_eq!((read.name.as_str(), read.edge_weight_type), ("square", "EUC_2D"));
    assert_eq!(read.nodes, [1, 2, 3, 4, 9]);
    assert_eq!(points(&read), [(5, 0), (15, 0), (15, 10), (5, 10), (0, 5)]);
    let shipped = super::read("kroA100").unwrap();
    assert_eq!(super::read("kroA100.tsp").unwrap().cities, shipped.cities);
    assert_eq!((shipped.cities.count(), shipped.nodes[99]), (100, 100));
    // The city has coordinates 1380 and 939, and is moved by 10 and 5.
    let least = |axis: fn(&(u16, u16)) -> u16| points(&shipped).iter().map(axis).min();
    assert_eq!((least(|city| city.0), least(|city| city.1)), (Some(0), Some(0)));
}

#[test]
fn the_card_computes_distances_of_whole_coordinates_alone() {
    let is_plane =
        |head: &str, cities: &str| matches!(with_cities(head, cities).unwrap().cities, Cities::Plane(_));
    assert!(is_plane(HEAD, &CITIES.replace("-5", "-32757")));
    assert!(!is_plane(HEAD, &CITIES.replace("-5", "-32758")));
    assert!(!is_plane(HEAD, &CITIES.replace("+5", "5.5")));
    assert!(!is_plane(&HEAD.replace("EUC_2D", "CEIL_2D"), CITIES));
}

/// Five cities of each kind, with the distances from the first one.
#[test]
fn each_kind_of_coordinates_is_read() {
    // Differences to the first city: (3, 4), (1.5, 2), (-1, 1), (0, 7.6).
    let plane = "1 1 2\n2 4 6\n3 2.5 4\n4 0 3\n5 1 9.6";
    // The third coordinate differs by 0, 6, 0.5, 1.
    let space = "1 1 2 0\n2 4 6 0\n3 2.5 4 6\n4 0 3 .5\n5 1 9.6 -1";
    for (kind, cities, expected) in [
        // Roots of 25, 6.25, 2, 57.76.
        ("EUC_2D", plane, [0, 5, 3, 1, 8]),
        ("CEIL_2D", plane, [0, 5, 3, 2, 8]),
        // Roots of 2.5, 0.625, 0.2, 5.776: 1.58, 0.79, 0.45, 2.40.
        ("ATT", plane, [0, 2, 1, 1, 3]),
        ("MAN_2D", plane, [0, 7, 4, 2, 8]),
        ("MAX_2D", plane, [0, 4, 2, 1, 8]),
        // Roots of 25, 42.25, 2.25, 58.76: 5, 6.5, 1.5, 7.67.
        ("EUC_3D", space, [0, 5, 7, 2, 8]),
        ("MAN_3D", space, [0, 7, 10, 3, 9]),
        ("MAX_3D", space, [0, 4, 6, 1, 8]),
        // Meridians: 0, 1 degree, 1.30 = 1.5 degrees, 0.45 = 0.75 degrees south, 90 degrees. One of them is 111.3238 km.
        ("GEO", "1 0 0\n2 1 0\n3 1.30 0\n4 -0.45 0\n5 90 0", [0, 112, 167, 84, 10020]),
    ] {
        let head = HEAD.replace("EUC_2D", kind);
        let read = with_cities(&head, cities).unwrap();
        assert_eq!(rows(&read)[0], expected, "{kind}");
        assert_eq!((read.edge_weight_type, read.nodes), (kind, vec![1, 2, 3, 4, 5]));
        let type_of_coordinates = if kind.ends_with("3D") { "THREED_COORDS" } else { "TWOD_COORDS" };
        let stated = format!("{head}\nNODE_COORD_TYPE: {type_of_coordinates}\nEDGE_WEIGHT_FORMAT: FUNCTION");
        assert_eq!(rows(&with_cities(&stated, cities).unwrap())[0], expected);
    }
}

const EXPLICIT: &str =
    "TYPE: TSP (M.~Hofmeister)\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: ";

/// The distance of cities `a` and `b`, `a` below `b`, is 10 a + b, counted from 1.
const EXPLICIT_ROWS: [[u32; 5]; 5] =
    [[0, 12, 13, 14, 15], [12, 0, 23, 24, 25], [13, 23, 0, 34, 35], [14, 24, 34, 0, 45], [15, 25, 35, 45, 0]];

fn explicit(format: &str, distances: &str) -> Result<Instance, String> {
    file(&format!("{EXPLICIT}{format}\nEDGE_WEIGHT_SECTION\n{distances}\nEOF\n"))
}

#[test]
fn each_format_of_distances_is_read() {
    for (format, distances) in [
        ("FULL_MATRIX", "0 12 13 14 15 12 0 23 24 25 13 23 0 34 35 14 24 34 0 45 15 25 35 45 0"),
        ("UPPER_ROW", "12 13 14 15 23 24 25 34 35 45"),
        ("LOWER_ROW", "12 13 23 14 24 34 15 25 35 45"),
        ("UPPER_DIAG_ROW", "0 12 13 14 15 0 23 24 25 0 34 35 0 45 0"),
        ("LOWER_DIAG_ROW", "0 12 0 13 23 0 14 24 34 0 15 25 35 45 0"),
        // By columns: the column of city 2 has the road to city 1, and so on.
        ("UPPER_COL", "12 13 23 14 24 34 15 25 35 45"),
        ("LOWER_COL", "12 13 14 15 23 24 25 34 35 45"),
        ("UPPER_DIAG_COL", "0 12 0 13 23 0 14 24 34 0 15 25 35 45 0"),
        ("LOWER_DIAG_COL", "0 12 13 14 15 0 23 24 25 0 34 35 0 45 0"),
    ] {
        let read = explicit(format, distances).unwrap();
        assert_eq!(rows(&read), EXPLICIT_ROWS, "{format}");
        assert_eq!((read.name.as_str(), read.edge_weight_type), ("f.tsp", "EXPLICIT"));
        assert_eq!(read.nodes, [1, 2, 3, 4, 5]);
        // A word a line, and blank lines between them.
        assert_eq!(rows(&explicit(format, &distances.replace(' ', "\r\n\r\n")).unwrap()), EXPLICIT_ROWS);
        // The diagonal is in no tour.
        let marked = explicit(format, &distances.replace(" 0 ", " -1 ").replace(" 0", " 9999.5")).unwrap();
        assert_eq!(rows(&marked), EXPLICIT_ROWS);
        // One distance less, and one more.
        let (less, last) = distances.rsplit_once(' ').unwrap();
        let error = explicit(format, less).unwrap_err();
        let total = distances.split(' ').count();
        assert_eq!(
            error,
            format!("f.tsp:7: 'EOF' after {} of the {total} distances of {format} for 5 cities", total - 1)
        );
        let error = explicit(format, &format!("{less}\n{last} 7")).unwrap_err();
        assert_eq!(error, format!("f.tsp:7: '7' after the {total} distances of {format} for 5 cities"));
    }
}

#[test]
fn files_are_read_in_every_spelling() {
    let expected = with_cities(HEAD, CITIES).unwrap();
    let whole = format!("{HEAD}\nNODE_COORD_SECTION\n{CITIES}\nEOF\n");
    for (change, text) in [
        ("no end", whole.replace("EOF\n", "")),
        ("no end of line", whole.trim_end().to_owned()),
        ("CRLF", whole.replace('\n', "\r\n")),
        ("a mark of the encoding", format!("\u{feff}{whole}")),
        ("spaces", whole.replace(": ", "   :\t").replace("SECTION", "SECTION   ")),
        ("no spaces", whole.replace(": ", ":").replace(" :", ":")),
        ("a section with a colon", whole.replace("SECTION", "SECTION :")),
        ("a comment behind the type", whole.replace("TYPE: TSP", "TYPE : TSP (M.~Hofmeister)")),
        ("comments", whole.replace("TYPE:", "COMMENT: a NODE_COORD_SECTION\nCOMMENT:\nTYPE:")),
        ("a list's end", whole.replace("EOF", "-1\nEOF")),
        ("something behind the end", format!("{whole}anything\n")),
        ("a city over lines", whole.replace("1 0 0", "1\n0\n\n0").replace("2 10 0", "2 10\n0")),
        (
            "places to display",
            whole.replace("EOF", "DISPLAY_DATA_SECTION\n1 0.5 0\n2 -1 1\n-1\nEOF").replace(
                "NODE",
                "DISPLAY_DATA_TYPE : TWOD_DISPLAY\nEDGE_DATA_FORMAT: EDGE_LIST\nDISPLAY_DATA_SECTION\n1 1 1\nNODE",
            ),
        ),
        ("a kind of coordinates", whole.replace("NODE", "NODE_COORD_TYPE: NO_COORDS\nNODE")),
    ] {
        assert_eq!(file(&text).as_ref(), Ok(&expected), "{change}");
    }
    // Coordinates beside distances are places to display.
    let section = "EDGE_WEIGHT_SECTION\n12 13 14 15 23 24 25 34 35 45\n";
    let coordinates =
        "NODE_COORD_TYPE: THREED_COORDS\nNODE_COORD_SECTION\n1 0 0 0\n2 1 0 0\n3 2 0 0\n4 3 0 0\n5 4 0 9\n";
    for sections in [[section, coordinates], [coordinates, section]] {
        let read = file(&format!("{EXPLICIT}UPPER_ROW\n{}", sections.concat())).unwrap();
        assert_eq!(rows(&read), EXPLICIT_ROWS);
    }
}

#[test]
fn errors_of_the_head_name_their_line() {
    for (head, text) in [
        ("TYPE: ATSP", "f.tsp:1: TYPE ATSP: only symmetric problems, TYPE TSP"),
        ("TYPE: TSPX", "f.tsp:1: TYPE TSPX: only symmetric problems, TYPE TSP"),
        ("TYPE:", "f.tsp:1: TYPE : only symmetric problems, TYPE TSP"),
        ("TYPE: TSP", "f.tsp:2: no EDGE_WEIGHT_TYPE before NODE_COORD_SECTION"),
        ("TYPE: TSP\nTYPE: TSP", "f.tsp:2: TYPE occurs twice; it is already in line 1"),
        ("CAPACITY: 5", "f.tsp:1: 'CAPACITY' is no keyword of a symmetric problem"),
        ("hello", "f.tsp:1: 'hello': a line is KEYWORD: VALUE, a section, or EOF"),
        ("\n\n\nFIXED_EDGES_SECTION", "f.tsp:4: FIXED_EDGES_SECTION: a climb does not keep fixed edges"),
        ("EDGE_DATA_SECTION", "f.tsp:1: EDGE_DATA_SECTION: a climb uses roads between all cities"),
        (
            "TOUR_SECTION",
            "f.tsp:1: TOUR_SECTION: the sections of a problem are NODE_COORD_SECTION, EDGE_WEIGHT_SECTION and",
        ),
        ("EDGE_WEIGHT_SECTION", "f.tsp:1: no TYPE before EDGE_WEIGHT_SECTION"),
        (
            &format!("{HEAD}\nEDGE_WEIGHT_SECTION"),
            "f.tsp:5: EDGE_WEIGHT_SECTION, but EDGE_WEIGHT_TYPE is EUC_2D;",
        ),
        (
            &HEAD.replace("EUC_2D", "XRAY1"),
            "f.tsp:4: EDGE_WEIGHT_TYPE XRAY1: write one of EUC_2D, EUC_3D, CEIL_2D, ATT, GEO, MAN_2D, \
             MAN_3D, MAX_2D, MAX_3D, EXPLICIT; EXPLICIT takes any distances in an EDGE_WEIGHT_SECTION",
        ),
        (
            &format!("{HEAD}\nNODE_COORD_TYPE: THREED_COORDS"),
            "f.tsp:5: NODE_COORD_TYPE is THREED_COORDS, but EDGE_WEIGHT_TYPE EUC_2D takes 2 coordinates",
        ),
        (
            &format!("{HEAD}\nNODE_COORD_TYPE: BOTH"),
            "f.tsp:5: NODE_COORD_TYPE BOTH: write TWOD_COORDS, THREED_COORDS or NO_COORDS",
        ),
        (&HEAD.replace('5', "4"), "f.tsp:3: DIMENSION 4: the card's program takes 5 to 256 cities"),
        (&HEAD.replace('5', "257"), "f.tsp:3: DIMENSION 257: the card's program takes 5 to 256 cities"),
        (&HEAD.replace('5', "five"), "f.tsp:3: DIMENSION 'five': write a number of cities"),
    ] {
        let error = with_cities(head, CITIES).unwrap_err();
        assert!(error.starts_with(text), "{error}\n  for {text}");
    }
    for (text, expected) in [
        ("", "f.tsp:1: the file ends without a NODE_COORD_SECTION, which has the cities, and without"),
        (EXPLICIT, "f.tsp:4: the file ends without a NODE_COORD_SECTION"),
        ("NAME: x\n\n-1\n", "f.tsp:3: '-1': a line is KEYWORD: VALUE"),
    ] {
        let error = file(text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = super::read("/nowhere/f.tsp").unwrap_err().to_string();
    assert!(error.contains("/nowhere/f.tsp: cannot read it (No such file or directory)"), "{error}");
}

#[test]
fn errors_of_cities_name_their_line() {
    let geo = HEAD.replace("EUC_2D", "GEO");
    let explicit = format!("{EXPLICIT}UPPER_ROW");
    for (head, cities, text) in [
        (
            HEAD,
            "1 0 0\n2 10 0",
            "f.tsp:8: a city has the form NUMBER X Y; DIMENSION says 5 cities, and 3 are still missing",
        ),
        (
            HEAD,
            "1 0 0\n2 10\n3 4 5\n",
            "f.tsp:7: a city has the form NUMBER X Y; DIMENSION says 5 cities, and 4 are still",
        ),
        (
            HEAD,
            "1 0 0 0\n2 10 0",
            "f.tsp:6: a city has the form NUMBER X Y; DIMENSION says 5 cities, and 5 are still",
        ),
        (
            &HEAD.replace("EUC_2D", "EUC_3D"),
            CITIES,
            "f.tsp:6: a city has the form NUMBER X Y Z; DIMENSION says 5 cities, and 5 are still",
        ),
        (HEAD, "1 0 0\n1 10 0", "f.tsp:7: city 1 occurs twice; it is already in line 6"),
        (HEAD, "one 0 0", "f.tsp:6: 'one' is not the number of a city"),
        (HEAD, "1 0 nan", "f.tsp:6: 'nan' is no coordinate"),
        (HEAD, "1 0 1e999", "f.tsp:6: '1e999' is no coordinate"),
        (&geo, &CITIES.replace("-5", "360.01"), "f.tsp:10: coordinate 360.01: GEO takes degrees and minutes"),
        (
            HEAD,
            &CITIES.replace("-5", "-1e300"),
            "f.tsp:10: too far from city 1; the card's program takes distances",
        ),
        (
            HEAD,
            "1 0 0\n2 1e9 0\n3 0 1e9\n4 1 1e9\n5 1e9 1",
            "f.tsp:8: too far from city 2; the card's program takes distances below 1073741824; divide all coordinates",
        ),
        (
            &HEAD.replace("EUC_2D", "MAX_2D"),
            "1 0 0\n2 1e9 0\n3 0 1e9\n4 1 1e9\n5 1e9 1",
            "f.tsp:6: a tour could have length 5000000000, but the card's program takes at most 4294967295;",
        ),
        (HEAD, &format!("{CITIES}\nNODE_COORD_SECTION"), "f.tsp:11: a second NODE_COORD_SECTION"),
        (HEAD, &format!("{CITIES}\n10 1 1"), "f.tsp:11: '10 1 1': a line is KEYWORD: VALUE"),
        (
            &explicit,
            CITIES,
            "f.tsp:11: the file ends without an EDGE_WEIGHT_SECTION, which has the distances of",
        ),
    ] {
        let error = with_cities(head, cities).unwrap_err();
        assert!(error.starts_with(text), "{error}\n  for {text}");
    }
    let cut = file(&format!("{HEAD}\nNODE_COORD_SECTION\n1 0 0\n")).unwrap_err();
    assert!(
        cut.starts_with("f.tsp:5: DIMENSION says 5 cities, but the file has 1; is the file cut off?"),
        "{cut}"
    );
}

#[test]
fn errors_of_distances_name_their_line() {
    let full = "0 12 13 14 15\n12 0 23 24 25\n13 23 0 34 35\n14 24 34 0 45\n15 25 35 45 0";
    for (format, distances, text) in [
        (
            "FULL_MATRIX",
            full.replace("12 0", "11 0"),
            "f.tsp:7: distance 11 from city 2 to city 1, but 12 back; only symmetric problems can be climbed",
        ),
        ("FULL_MATRIX", full.replace(" 24 34", " 2x 34"), "f.tsp:9: '2x' is no distance"),
        ("FULL_MATRIX", full.replace("34 0 45", "34 0x 45"), "f.tsp:9: '0x' is no distance"),
        ("FULL_MATRIX", full.replace("23 0", "-23 0"), "f.tsp:8: distance -23: distances are 0 or more"),
        (
            "FULL_MATRIX",
            full.replace("13 14", "13.5 14"),
            "f.tsp:6: distance 13.5: TSPLIB's distances are whole numbers;",
        ),
        (
            "UPPER_ROW",
            "12 13\n1073741824 15".into(),
            "f.tsp:7: distance 1073741824: the card's program takes distances below 1073741824; divide all distances",
        ),
        (
            "UPPER_ROW",
            "1000000000 ".repeat(10),
            "f.tsp:5: a tour could have length 5000000000, but the card's",
        ),
        ("UPPER_ROW", "12 13\n-inf".into(), "f.tsp:7: distance -inf: distances are 0 or more"),
        (
            "UPPER_ROW",
            "12 13\nnan".into(),
            "f.tsp:7: 'nan' after 2 of the 10 distances of UPPER_ROW for 5 cities",
        ),
        ("UPPER_ROW", "12 13\nEDGE".into(), "f.tsp:7: 'EDGE' after 2 of the 10 distances of UPPER_ROW for 5"),
        (
            "FUNCTION",
            "0".into(),
            "f.tsp:4: EDGE_WEIGHT_FORMAT FUNCTION: write one of FULL_MATRIX, UPPER_ROW, LOWER_ROW, UPPER_DIAG_ROW, \
             LOWER_DIAG_ROW, UPPER_COL, LOWER_COL, UPPER_DIAG_COL, LOWER_DIAG_COL",
        ),
    ] {
        let error = explicit(format, &distances).unwrap_err();
        assert!(error.starts_with(text), "{error}\n  for {text}");
    }
    let section = "EDGE_WEIGHT_SECTION\n1 2 3 4 5 6 7 8 9 10\n";
    let second = file(&format!("{EXPLICIT}UPPER_ROW\n{section}{section}")).unwrap_err();
    assert_eq!(second, "f.tsp:7: a second EDGE_WEIGHT_SECTION; remove one of the two");
    let cut = file(&format!("{EXPLICIT}UPPER_ROW\nEDGE_WEIGHT_SECTION\n1 2 3\n")).unwrap_err();
    assert_eq!(
        cut,
        "f.tsp:5: the section has 3 of the 10 distances of UPPER_ROW for 5 cities; is the file cut off?"
    );
    let without = EXPLICIT.replace("\nEDGE_WEIGHT_FORMAT: ", "");
    let without = file(&format!("{without}\nEDGE_WEIGHT_SECTION\n1 2 3\n")).unwrap_err();
    assert_eq!(without, "f.tsp:4: no EDGE_WEIGHT_FORMAT before EDGE_WEIGHT_SECTION");
}

/// Whole distances of a file that is read are symmetric, and fit the card's program.
fn check(instance: &Instance) {
    let rows = rows(instance);
    assert_eq!(rows.len(), instance.nodes.len());
    assert!((5..=256).contains(&rows.len()));
    for (a, row) in rows.iter().enumerate() {
        assert_eq!((row.len(), row[a]), (rows.len(), 0));
        assert!(row.iter().enumerate().all(|(b, &distance)| distance < 1 << 30 && distance == rows[b][a]));
    }
}

fn damage(text: &str, cuts: Vec<(usize, u8)>, end: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (at, byte) in cuts {
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
    }
    bytes.truncate(end);
    String::from_utf8(bytes).unwrap()
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,400}") {
        let _ = parse(&text, "f.tsp");
    }

    #[test]
    fn any_sections_are_read_or_refused(
        kind in prop::sample::select(vec!["EUC_2D", "GEO", "ATT", "MAX_3D", "EXPLICIT", "XRAY1"]),
        format in prop::sample::select(vec!["FULL_MATRIX", "UPPER_ROW", "LOWER_DIAG_COL", "FUNCTION"]),
        section in prop::sample::select(vec!["NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION", "DISPLAY_DATA_SECTION"]),
        words in prop::collection::vec("([0-9]{1,3}|-?[0-9]{1,12}(\\.[0-9]{0,9})?(e[0-9]{1,3})?|EOF|:|-1)", 0..40),
        line in 1usize..8,
    ) {
        let words: Vec<String> = words.chunks(line).map(|words| words.join(" ")).collect();
        let head = format!("TYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: {kind}\nEDGE_WEIGHT_FORMAT: {format}");
        if let Ok(instance) = parse(&format!("{head}\n{section}\n{}", words.join("\n")), "f.tsp") {
            check(&instance);
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        cuts in prop::collection::vec((0usize..1400, 0u8..128), 0..8),
        end in 0usize..1400,
    ) {
        if let Ok(instance) = parse(&damage(KRO_A100, cuts, end), "f.tsp") {
            check(&instance);
        }
    }

    #[test]
    fn damaged_distances_are_read_or_refused(
        cuts in prop::collection::vec((0usize..200, 0u8..128), 0..4),
        end in 100usize..200,
    ) {
        let text = format!("{EXPLICIT}LOWER_DIAG_ROW\nEDGE_WEIGHT_SECTION\n0 12 0 13 23 0 14 24 34 0 15 25 35 45 0\nEOF\n");
        if let Ok(instance) = parse(&damage(&text, cuts, end), "f.tsp") {
            check(&instance);
        }
    }

    #[test]
    fn written_files_are_read(points in prop::collection::vec((-9000i64..9000, -9000i64..9000), 5..=256)) {
        let lines = points.iter().zip(1..).map(|((x, y), node)| format!("{node} {x} {y}\n"));
        let cities: String = lines.collect();
        let read = with_cities(&HEAD.replace('5', &points.len().to_string()), &cities).unwrap();
        let least = points.iter().fold((i64::MAX, i64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
        for (&(x, y), &(a, b)) in super::tests::points(&read).iter().zip(&points) {
            prop_assert_eq!((i64::from(x) + least.0, i64::from(y) + least.1), (a, b));
        }
    }

    /// The card's distances are those of floating-point numbers.
    #[test]
    fn distances_of_whole_coordinates_are_those_of_decimals(
        points in prop::collection::vec((0i32..32_767, 0i32..32_767), 5..=20),
    ) {
        let section = |shift: &str| -> String {
            points.iter().zip(1..).map(|((x, y), node)| format!("{node} {x}{shift} {y}{shift}\n")).collect()
        };
        let head = HEAD.replace('5', &points.len().to_string());
        let (whole, shifted) = (with_cities(&head, &section("")), with_cities(&head, &section(".5")));
        let (whole, shifted) = (whole.unwrap(), shifted.unwrap());
        prop_assert!(matches!(whole.cities, Cities::Plane(_)) && matches!(shifted.cities, Cities::Table(_)));
        prop_assert_eq!(rows(&whole), rows(&shifted));
    }

    /// Each format gives the matrix that was written.
    #[test]
    fn written_distances_are_read(
        count in 5usize..=40,
        seed in any::<u32>(),
        format in 0usize..9,
        width in 1usize..30,
    ) {
        let distance = |a: usize, b: usize| {
            let (a, b) = (a.min(b) as u32, a.max(b) as u32);
            if a == b { 0 } else { seed.wrapping_mul(a + 1).wrapping_add(b) % 1_000_000 }
        };
        let (n, name) = (count, format::Format::names().split(", ").nth(format).unwrap().to_owned());
        let mut words = Vec::new();
        // By columns, `a` is the column.
        for a in 0..n {
            for b in 0..n {
                let part = match name.as_str() {
                    "UPPER_ROW" | "LOWER_COL" => b > a,
                    "UPPER_DIAG_ROW" | "LOWER_DIAG_COL" => b >= a,
                    "LOWER_ROW" | "UPPER_COL" => b < a,
                    "LOWER_DIAG_ROW" | "UPPER_DIAG_COL" => b <= a,
                    _ => true,
                };
                words.extend(part.then(|| distance(a, b).to_string()));
            }
        }
        let lines: Vec<String> = words.chunks(width).map(|line| line.join(" ")).collect();
        let head = format!("{EXPLICIT}{name}\nEDGE_WEIGHT_SECTION\n").replace(": 5\n", &format!(": {n}\n"));
        let read = parse(&format!("{head}{}\nEOF\n", lines.join("\n")), "f.tsp").unwrap();
        let expected: Vec<Vec<u32>> = (0..n).map(|a| (0..n).map(|b| distance(a, b)).collect()).collect();
        prop_assert_eq!(rows(&read), expected);
    }
}
