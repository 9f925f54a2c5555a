"""Portals and handlers: the interface of cards of the design sPIN to programs."""
