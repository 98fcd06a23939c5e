"""Oracles, strategies, fuzz cases, engines and the browser that tests share."""
