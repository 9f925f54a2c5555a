"""Tables, curves, bars and timelines: the display of reports. Other packages define the reports."""
