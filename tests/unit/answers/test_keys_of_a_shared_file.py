"""Keys of one of two pipelines that write into the same output file."""

from __future__ import annotations

import json

from support.page_pipelines import counted, served

from sfm_stream.answers.known_keys import known_keys

CONFIG = """[pipeline]
id = "{name}"
[input]
path = "{name}.jsonl"
complete = true
[event]
key = "page"
item = "user"
time = "at"
time_unit = "ms"
[window]
size = "hour"
[privacy]
epsilon = 1
max_epsilon_per_item_day = 100
keys = "declared"
declared = {keys}
[output]
path = "both.sqlite"
"""


def test_each_pipeline_has_its_own_keys_and_those_that_both_have(tmp_path):
    found = {}
    for name, keys in (("first", ["/a", "/b", "/c"]), ("second", ["/b", "/d"])):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"page": "/b", "user": 1, "at": 1_767_225_600_000}) + "\n")
        (tmp_path / f"{name}.toml").write_text(CONFIG.format(name=name, keys=json.dumps(keys)))
        found[name] = served(counted(tmp_path / f"{name}.toml"))
    for name, keys in (("first", [("/a",), ("/b",), ("/c",)]), ("second", [("/b",), ("/d",)])):
        with found[name].reader() as reader:
            assert list(known_keys(reader, found[name].terms).keys) == keys
            page = known_keys(reader, found[name].terms, limit=1)
            assert (page.keys, page.more) == ((keys[0],), True)
            assert not known_keys(reader, found[name].terms, after=keys[-1]).keys
