"""This library beside its peers: tasks, contenders, a fresh process each, tables and figures; ``peers.py`` runs it."""
