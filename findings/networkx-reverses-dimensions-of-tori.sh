#!/usr/bin/env bash
# Guess: grid_graph of networkx names a node by its coordinates in the order of the dimensions: with dim=(4, 8), the first is below 4.
# From:  networkx's page on grid_graph: the size in each dimension is the value of the corresponding element, and so with periodic.
#        grid_2d_graph(4, 8) names its nodes (0, 0) to (3, 7).
# True:  networkx 3.6.1 reverses the coordinates: nodes are (0, 0) to (7, 3), and periodic=(True, False) closes the last coordinate into
#        rings. Nothing fails where all sizes are equal, and otherwise routes by dimension take another way than the card's.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check networkx==3.6.1
cat >tori.py <<'P'
import networkx

torus = networkx.grid_graph(dim=(4, 8), periodic=(True, False))
plain = networkx.grid_2d_graph(4, 8)
rings = torus.has_edge((0, 0), (3, 0)), torus.has_edge((0, 0), (0, 3))
print(f"networkx {networkx.__version__}: the last node is {max(torus)} by grid_graph, {max(plain)} by grid_2d_graph")
print(f"a ring of 4 along the first coordinate: {rings[0]}, along the last: {rings[1]}")
raise SystemExit((max(torus), max(plain), rings) != ((7, 3), (3, 7), (False, True)))
P
env/bin/python tori.py || { echo "changed: the nodes or edges differ from those seen with networkx 3.6.1" >&2; exit 1; }
