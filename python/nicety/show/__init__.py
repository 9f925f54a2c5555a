"""Tables, curves, bars and timelines: the display of everything. Reports are defined elsewhere."""
