"""Portals and handlers: the interface of programs to cards of the design sPIN."""
