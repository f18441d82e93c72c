"""A fleet that misbehaves on command, a load generator, and a phone that shows what pages.

Imports nothing else of the project: it stands where real engines, clients and a real phone would stand.
"""
