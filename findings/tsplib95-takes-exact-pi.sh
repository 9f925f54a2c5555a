#!/usr/bin/env bash
# Guess: tsplib95 gives the distances of TSPLIB's GEO problems to the digit, because they are whole kilometres.
# From:  TSPLIB 95's documentation: the GEO distance uses PI = 3.141592 and a radius of 6378.388 km, and is cut to a whole number.
# True:  tsplib95 0.7.1 converts angles with the exact pi. Some distances are one kilometre longer, so tour lengths differ from
#        published ones.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check tsplib95==0.7.1 networkx==2.8.8 click==8.1.8 Deprecated==1.2.18 tabulate==0.8.10
cat >pair.py <<'P'
import math

import tsplib95

CITIES = (6.19, 81.15), (-17.33, -0.23)  # DDD.MM


def distance(pi: float) -> int:
    """The formula of TSPLIB's documentation, with whole degrees by truncation."""
    (latitude, longitude), (other_latitude, other_longitude) = (
        [pi * (int(value) + 5 * (value - int(value)) / 3) / 180 for value in city] for city in CITIES
    )
    q1, q2 = math.cos(longitude - other_longitude), math.cos(latitude - other_latitude)
    q3 = math.cos(latitude + other_latitude)
    return int(6378.388 * math.acos(((1 + q1) * q2 - (1 - q1) * q3) / 2) + 1)


lines = [f"{number} {x} {y}" for number, (x, y) in enumerate(CITIES, 1)]
head = "NAME: pair\nTYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: GEO\nNODE_COORD_SECTION\n"
found = tsplib95.parse(head + "\n".join(lines) + "\nEOF\n").get_weight(1, 2)
print(f"tsplib95: {found}; with PI = 3.141592: {distance(3.141592)}; with the exact pi: {distance(math.pi)}")
raise SystemExit((found, distance(3.141592), distance(math.pi)) != (9351, 9350, 9351))
P
env/bin/python pair.py || { echo "changed: it is not 9351, 9350 and 9351" >&2; exit 1; }
