# `make run` and `make test` set themselves up in .venv; from the second time on they start at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PRETTIER := npx --yes prettier@3.10.1

.PHONY: help run test test-narrow test-long check format sizes clean smollm2

help:
	@echo "make run       install what the app needs and start it (http://127.0.0.1:7860); TARGET=small, or any model, names its target"
	@echo "make test      install what the tests need and run them"
	@echo "make test-narrow those of compiled code once more as for a processor without AVX-512"
	@echo "make test-long the long ones: visits in a browser, Ray, the torture"
	@echo "make check     lint and types"
	@echo "make format    lay the code out and fix what ruff can fix"
	@echo "make sizes     write down how many lines each package has"
	@echo "make clean     remove .venv and caches; storage/ stays"

run: $(VENV)/.run-ready smollm2
	$(if $(TARGET),OMNIDEMO_TARGET='$(TARGET:small=smollm2)') $(BIN)/python app.py

test: $(VENV)/.dev-ready smollm2
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -m "not long"

# Where the processor has no AVX-512, `make test` has been this already.
test-narrow: $(VENV)/.dev-ready smollm2
	@if narrow=$$($(BIN)/python -m tests.support.narrow); then \
		env $$narrow $(BIN)/python -m pytest -n 2 --dist worksteal --durations=5 tests/kernels; fi

test-long: $(VENV)/.dev-ready smollm2
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -m long

check: $(VENV)/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if command -v npx >/dev/null && $(PRETTIER) --version >/dev/null 2>&1; then $(PRETTIER) --check 'assets/ui/**/*.{js,css}' 'tests/page/*.mjs'; \
	else echo "JavaScript and CSS are not checked: there is no npx here, or it cannot fetch prettier."; fi

format: $(VENV)/.dev-ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(PRETTIER) --write 'assets/ui/**/*.{js,css}' 'tests/page/*.mjs'

sizes: $(VENV)/.dev-ready
	$(BIN)/python -m tests.support.sizes

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "OmniDemo needs Python 3.11 or newer; name one with: make PYTHON=python3.12 run"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) \
		|| { rm -rf $(VENV); echo "Python could not make $(VENV); on Debian and Ubuntu install it with: apt-get install python3-venv"; exit 1; }

# The stamps say which requirements are installed; python itself is order-only, for its date is the system's.
$(VENV)/.run-ready: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	@touch $@

# The weights of the target of the first minutes, in the user's cache folder. Without them the app starts on the bundled target.
smollm2: $(VENV)/.run-ready
	@$(BIN)/python -m omnidemo fetch smollm2 --patience 8 >/dev/null \
		|| echo "So the default target is bundled/large; the next start tries again."

$(VENV)/.dev-ready: requirements-dev.txt $(VENV)/.run-ready
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements-dev.txt
	@touch $@
