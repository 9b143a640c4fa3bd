"""Answers over HTTP: a JSON API and a page, made of published records alone."""
