"""Commands of applications: those on network flow processors, and schedules."""
