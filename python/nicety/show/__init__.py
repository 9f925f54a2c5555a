"""Tables, curves, bars and timelines: how anything is shown. Reports are known elsewhere."""
