"""Portals and handlers: what cards of the design sPIN offer to programs."""
