"""The choice of a kernel: what is installed, what is asked for, what is in use."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

import pytest
from support.embedded_runs import run_here, write_config, write_events

from sfm_stream import kernels
from sfm_stream.errors import ConfigError


@pytest.fixture
def installed(monkeypatch):
    """Puts a module, or None for one that is missing, in the place of the compiled kernel."""

    def put(module):
        monkeypatch.setitem(sys.modules, "sfm_stream_native", module)
        kernels._installed.cache_clear()

    yield put
    kernels.choose("auto")
    kernels._installed.cache_clear()


def module_of(version: str) -> ModuleType:
    module = ModuleType("sfm_stream_native")
    module.__version__ = version
    return module


def test_the_compiled_kernel_is_taken_where_it_is_installed(installed):
    installed(module := module_of(kernels.VERSION))
    assert (kernels.native(), kernels.in_use(), kernels.why_not()) == (module, "native", "")
    kernels.choose("native")
    assert kernels.native() is module


def test_python_is_taken_where_it_is_asked_for(installed):
    installed(module_of(kernels.VERSION))
    kernels.choose("python")
    assert (kernels.native(), kernels.in_use()) == (None, "python")


@pytest.mark.parametrize(
    ("module", "says"),
    [(None, "is not installed"), (module_of("0.0.9"), "sfm-stream-native 0.0.9 is installed, and")],
)
def test_where_it_cannot_be_had_auto_is_python_and_native_an_error_with_the_remedy(installed, module, says):
    installed(module)
    kernels.choose("auto")
    assert kernels.in_use() == "python"
    assert says in kernels.why_not()
    with pytest.raises(ConfigError, match=rf"^worker.kernel: .*{says}.* pip install 'sfm-stream\[native\]=="):
        kernels.choose("native")
    assert kernels.in_use() == "python"


def test_a_run_takes_the_kernel_that_its_configuration_names(installed, tmp_path):
    installed(None)
    write_events(tmp_path / "in.jsonl", [])
    config = write_config(tmp_path)
    whole = config.read_text()
    config.write_text(f'{whole}\n[worker]\nkernel = "native"\n')
    with pytest.raises(ConfigError, match=r"^worker.kernel: sfm-stream-native is not installed"):
        run_here(config)
    assert not (tmp_path / "out.sqlite").exists(), "before anything is opened"
    installed(module_of(kernels.VERSION))
    config.write_text(f'{whole}\n[worker]\nkernel = "python"\n')
    run_here(config)
    assert kernels.in_use() == "python"


def test_one_that_cannot_be_loaded_is_not_taken(installed, monkeypatch, tmp_path):
    (tmp_path / "sfm_stream_native.py").write_text("raise ImportError('built for another machine')", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sfm_stream_native", raising=False)
    kernels._installed.cache_clear()
    assert kernels.why_not() == "sfm-stream-native cannot be loaded: built for another machine"


def test_the_compiled_kernel_offers_what_is_written(kernel):
    """Every function and class of the protocols, with their arguments; and no other."""
    if kernel == "python":
        assert kernels.native() is None
        return
    written = {
        name: [*inspect.signature(each).parameters][1:]
        for name, each in vars(kernels.Native).items()
        if inspect.isfunction(each) and not name.startswith("_")
    }
    module, classes = kernels.native(), {"KeyIndex", "PlainRecords"}
    assert classes < {*module.__all__}
    names = {*module.__all__} - classes - {"__version__"}
    assert written == {name: [*inspect.signature(getattr(module, name)).parameters] for name in names}
    for each in classes:
        said, compiled = getattr(kernels, each), getattr(module, each)
        methods = {name for name in vars(said) if not name.startswith("_")}
        assert methods == {name for name in vars(compiled) if not name.startswith("_")}
        for name in methods:
            arguments = [*inspect.signature(getattr(said, name)).parameters]
            assert arguments == [*inspect.signature(getattr(compiled, name)).parameters], name
