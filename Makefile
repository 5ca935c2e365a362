# make demo: a segmented recording in out/    make test: the checks    make setup: .venv with the program in it
# make check: those that take less than half a minute, and need neither OpenGL nor a display
# make exhaustive: all tests, those included of which make test tries a part since they take long (more models, sizes,
#              seeds, faults and ways of each kind), and the types of all systems; a quarter of an hour
# make soak: 10,000 live frames with everything happening to them, some minutes
# make sound: a minute from a microphone, and how far its clicks are from their flashes
# make fuzz: mutated models, recordings, streams and others, CASES=1000 of each, and recordings killed, KILLS=100; SEED=0
# make fuzz-graphs: N=5000 random graphs of all ops on OpenGL and in native code, and a tenth as many in int8, in uint8, with
#              graphs of their own in them and with states, beside TensorFlow Lite; goes on where it was ended, AFRESH=1
#              begins anew; those that differ, made small, in build/graphs; SEED=0 is the first
# make fuzz-bytes: N=20000 mutations of 8-bit models, drawn here and cut out of those of MODELS=DIR, against TensorFlow
#              Lite's reference kernels; those that differ in build/quantized; SEED=0 is the first, and where it goes on
# make fuzz-memory: the CPU's code of every case of every op, and of N=500 random graphs of each kind, between pages that
#              may not be touched; OPS="CONV_2D ADD" for some, SEED=0
# make fuzz-models: mutations of small models, the catalogue's and those of MODELS=DIR: PASSES=20000 through reader and
#              passes, COMPILED=2000 compiled, RUN=1000 on the GPU, WRITTEN=1000 through TensorFlow Lite; and REFUSALS=2000:
#              what is called damaged is refused by TensorFlow Lite, too
# make models: the catalogue's models and published networks, GPU against CPU on 20 inputs, and what each takes, some
#              minutes; MODELS=DIR for the .tflite files of a folder, too; figures in build/models.json
# make delegate: the same models through TensorFlow Lite's interpreter with the delegate, and random networks of which
#              the GPU lacks some ops, NETWORKS=500, and 100 lifetimes; figures in build/delegate.json
# make memory: the same models under every plan of memory, with nothing left in it before each run: the same bytes;
#              figures in build/memory.json
# make cliffs: the same models and 200 random networks: fused, none costs more than with a kernel for each op, by counted
#              work on all families and by CPU time here; CLIFFS=200; many minutes; figures in build/cliffs.json
# make quantized: 8-bit ops, and models of them made here and of MODELS=DIR on 100 inputs: how near the GPU, and XNNPACK,
#              are to TensorFlow Lite's reference kernels; many minutes; WAY=native: the CPU's code; build/quantized.json
# make op-cases: every case of every op (gpu_delegate/cases), on the GPU in three ways and as this CPU's code, with SEEDS=3
#              random inputs, against TensorFlow Lite; a quarter of an hour; OPS="CONV_2D ADD" for some
# make league: each model of the catalogue and of MODELS=DIR, folders below included, on OpenGL and in native code: how much
#              runs, why not the rest, errors, starts and times; a process for each step; an interrupted run goes on; hours
#              for hundreds of models; figures in build/league.json, which `tests.tools.league --show --write` puts into
#              docs/models.md
# make contenders: whole models on the CPU, in turn with XNNPACK, OpenVINO, onnxruntime, MNN and ncnn, which get a folder of
#              their own, and TensorFlow, of which tf2onnx makes ONNX, an environment: of MODELS=DIR, else networks of random
#              weights; THREADS=2; half a minute for each model
# make whole-frame: what a whole frame takes without a GPU, from file to file, in turn with a script that uses MediaPipe,
#              which gets an environment of its own (make script-env; Python up to 3.12); SIZES="640x480 1920x1080" ROUNDS=5;
#              a quarter of an hour for each size
# make examples: the files of examples/, also those that need FastAPI, PyTorch, Jupyter or GStreamer, in an environment of
#              its own; a minute
# make compile-budgets: seconds of the CPU that compiling takes with empty caches, of the catalogue or COMPILED="FILES",
# at BUDGETS="2 5 10 20" or the default; minutes
# make gpu-compilers: what the compilers of GPUs that are not here make of the kernels, in docs/gpu.md; minutes;
#              TEXELFLOW_GPU_COMPILERS=DIR for Mesa's drivers over fake devices, without it AMD's alone
# make archive-test: an archive of 60 small recordings on a real Ray cluster of three nodes, whose workers, a node and the
#              driver are killed; what it takes; half an hour. STEPS="chaos resume" for some; SEED=0; build/archive.json
# make archive-scale: archives on a thousand nodes, simulated around the real scheduler, and what its parts cost on this
#              machine, in docs/scale.md; some minutes; SCALE="--part losses --nodes 100" for some of it
# PYTHON=... chooses the interpreter (3.10 to 3.13) that .venv is made with.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

CASES := 1000
KILLS := 100
SEED := 0
N := 5000
PASSES := 20000
COMPILED := 2000
RUN := 1000
WRITTEN := 1000
REFUSALS := 2000
MODELS :=
NETWORKS := 500
CLIFFS := 200
START := hardware
BUDGET := 600
SEEDS := 3
OPS :=
WAY := gl
SCALE :=
THREADS := 1
STEPS :=
ARCHIVE_ENV := build/archive-env
SCRIPT_ENV := build/script-env
EXAMPLES_ENV := build/examples-env
SIZES := 640x480
ROUNDS := 5
LINK = rm -rf .links && mkdir -p .links/texelflow && \
       ln -s $(addprefix ../../,app gpu_delegate shaders assets $(wildcard app/api/*)) .links/texelflow

# Many tests wait for clocks, windows and other processes: three workers keep two cores busy
WORKERS := -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: setup system demo check lint test suite types types-linux types-win32 types-darwin exhaustive soak sound fuzz fuzz-graphs fuzz-bytes fuzz-memory fuzz-models models delegate memory cliffs quantized op-cases league contenders whole-frame script-env examples gpu-compilers compile-budgets archive-test pieces check-arm tune-check bench lock clean

setup: $(STAMP)

$(STAMP): pyproject.toml .ci/setup $(wildcard constraints/*.txt)
	@PYTHON="$(PYTHON)" .ci/setup venv $(VENV)
	@touch $@

# OpenGL with its software driver, EGL, and Python's venv where Debian has split it off
system:
	@PYTHON="$(PYTHON)" .ci/setup system

demo: setup
	$(BIN)/texelflow demo

check: setup lint types
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not gl and not window and not slow and not exhaustive" --without-gl --hypothesis-profile quick

# mypy runs beside the tests
test: setup lint
	@.ci/setup tests
	@$(LINK)
	@$(MAKE) --no-print-directory -j 2 suite types-linux

suite:
	$(BIN)/pytest -q $(WORKERS) -m "not exhaustive" --hypothesis-profile usual

exhaustive: setup types
	@.ci/setup tests
	$(BIN)/pytest -q $(WORKERS)

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# mypy, over a tree of links that lies as the package is installed, for three systems at once; tests run on Linux alone
types: setup
	@$(LINK)
	@$(MAKE) --no-print-directory -j 3 types-linux types-win32 types-darwin

types-linux:
	$(BIN)/mypy --platform linux

types-win32 types-darwin: types-%:
	$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$* .links/texelflow examples

soak: setup
	@.ci/setup tests
	SOAK_FRAMES=10000 SOAK_RECORDINGS=50 $(BIN)/pytest -q tests/app/session/test_live_soak.py tests/app/archive/rendering/test_worker_soak.py

# A recording replayed in pieces, and in one go
pieces: setup
	@.ci/setup tests
	PIECE_TEST_FRAMES=960 $(BIN)/pytest -q -s tests/app/replay/test_replay_pieces.py

sound: setup
	@.ci/setup tests
	SOUND_SECONDS=60 $(BIN)/pytest -q -s tests/app/capture/test_microphone.py -k long

fuzz: setup
	$(BIN)/python -m tests.fuzz --cases $(CASES) --seed $(SEED) --model selfie --model selfie-landscape
	$(BIN)/python -m tests.fuzz.kills --cases $(KILLS) --seed $(SEED)

fuzz-graphs: setup
	$(BIN)/python -m tests.fuzz.graphs --count $(N) --seed $(SEED) $(if $(AFRESH),--afresh)
	for kind in int8 uint8 subgraphs states; do $(BIN)/python -m tests.fuzz.graphs --count $$(($(N) / 10)) --seed $(SEED) \
	    --kind $$kind $(if $(AFRESH),--afresh) || exit 1; done

fuzz-bytes: N := 20000
fuzz-bytes: setup
	$(BIN)/python -m tests.fuzz.quantized --count $(N) --seed $(SEED) $(if $(MODELS),--folder "$(MODELS)")

fuzz-memory: N := 500
fuzz-memory: setup
	$(BIN)/python -m tests.fuzz.guards cases $(OPS)
	$(BIN)/python -m tests.fuzz.guards graphs --count $(N) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.guards graphs --count $(N) --seed $(SEED) --kind int8
	$(BIN)/python -m tests.fuzz.guards graphs --count $(N) --seed $(SEED) --kind uint8

MUTATED = --seed $(SEED) --model selfie --model selfie-landscape $(if $(MODELS),--folder "$(MODELS)")
fuzz-models: setup
	$(BIN)/python -m tests.fuzz passes --cases $(PASSES) $(MUTATED)
	$(BIN)/python -m tests.fuzz compile --cases $(COMPILED) $(MUTATED)
	$(BIN)/python -m tests.fuzz gpu --cases $(RUN) $(MUTATED)
	$(BIN)/python -m tests.fuzz models --cases $(WRITTEN) $(MUTATED)
	$(BIN)/python -m tests.fuzz refusals --cases $(REFUSALS) $(MUTATED)

models: setup
	@mkdir -p build
	$(BIN)/python -m tests.models --json build/models.json $(if $(MODELS),--folder "$(MODELS)")

delegate: setup
	@.ci/setup tests
	@mkdir -p build
	TEXELFLOW_NETWORKS=0:$(NETWORKS) $(BIN)/pytest -q tests/gpu_delegate/delegate/test_random_partial.py
	LIFETIMES=100 $(BIN)/pytest -q -s tests/gpu_delegate/delegate/test_lifetimes.py -k left_behind
	$(BIN)/python -m tests.models --delegate --json build/delegate.json $(if $(MODELS),--folder "$(MODELS)")

memory: setup
	@mkdir -p build
	$(BIN)/python -m tests.models --memory --json build/memory.json $(if $(MODELS),--folder "$(MODELS)")

cliffs: setup
	@mkdir -p build
	$(BIN)/python -m tests.models --unfused --networks $(CLIFFS) --json build/cliffs.json $(if $(MODELS),--folder "$(MODELS)")

quantized: setup
	@mkdir -p build
	$(BIN)/python -m tests.quantized --way $(WAY) --ops
	$(BIN)/python -m tests.quantized --way $(WAY) --json build/quantized.json $(if $(MODELS),--folder "$(MODELS)")

league: setup
	$(BIN)/python -m tests.tools.league $(if $(MODELS),--folder "$(MODELS)")

contenders: setup
	$(BIN)/python -m pip install --quiet --no-deps --target build/contenders --upgrade openvino onnxruntime MNN ncnn pnnx
	test -e build/tf2onnx || $(BIN)/python -m venv build/tf2onnx
	build/tf2onnx/bin/python -m pip install --quiet tf2onnx tensorflow-cpu
	PYTHONPATH="$(CURDIR)/build/contenders" $(BIN)/python -m tests.contenders --threads $(THREADS) $(wildcard $(MODELS)/*.tflite)

whole-frame: setup script-env
	$(BIN)/python -m tests.tools.whole_frame $(addprefix --size ,$(SIZES)) --rounds $(ROUNDS)

script-env: $(SCRIPT_ENV)/.installed

# PyAV of the same version, so that the same x264 encodes; MediaPipe itself asks for opencv-contrib-python
$(SCRIPT_ENV)/.installed: $(STAMP)
	$(BIN)/python -m venv --clear $(SCRIPT_ENV)
	$(SCRIPT_ENV)/bin/python -m pip install -q --disable-pip-version-check mediapipe==0.10.21 opencv-contrib-python numpy \
	    "av==$$($(BIN)/python -c 'import av; print(av.__version__)')"
	@touch $@

op-cases: setup
	$(BIN)/python -m tests.op_table --seeds $(SEEDS) $(OPS)

compile-budgets: setup
	$(BIN)/python -m tests.compile_budgets $(COMPILED) $(addprefix --budget ,$(BUDGETS))

gpu-compilers: setup
	@.ci/setup tests
	$(BIN)/python -m tests.gpu_compilers --brief --write

# The packages of $(VENV), those that examples alone need (PyTorch without CUDA) and, where it is Debian's Python, GStreamer's,
# which no index has
SITE = -c 'from sysconfig import get_path; print(get_path("purelib"))'
$(EXAMPLES_ENV)/.installed: $(STAMP)
	$(BIN)/python -m venv --clear $(EXAMPLES_ENV)
	echo "import site; site.addsitedir('$$($(BIN)/python $(SITE))')" >"$$($(EXAMPLES_ENV)/bin/python $(SITE))/base.pth"
	$(EXAMPLES_ENV)/bin/python -m pip install -q --disable-pip-version-check fastapi httpx ipykernel nbclient jinja2 networkx sympy
	$(EXAMPLES_ENV)/bin/python -m pip install -q --disable-pip-version-check --index-url https://download.pytorch.org/whl/cpu torch
	echo /usr/lib/python3/dist-packages >"$$($(EXAMPLES_ENV)/bin/python $(SITE))/system.pth"
	@touch $@

examples: setup $(EXAMPLES_ENV)/.installed
	@.ci/setup tests
	$(EXAMPLES_ENV)/bin/python -m pytest -q -rs tests/repository/test_examples.py tests/repository/test_examples_apart.py

# In an environment of its own, made once, to which the program is installed as it is now; pip leaves folders behind
archive-test: $(ARCHIVE_ENV)/.installed
	@rm -rf build/lib build/bdist.*
	@$(ARCHIVE_ENV)/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall \
	    --no-build-isolation .
	@rm -rf build/lib build/bdist.*
	$(ARCHIVE_ENV)/bin/python -m tests.archive_proof $(STEPS) --seed $(SEED) --json build/archive.json

$(ARCHIVE_ENV)/.installed: pyproject.toml .ci/setup $(wildcard constraints/*.txt)
	@PYTHON="$(PYTHON)" .ci/setup archive $(ARCHIVE_ENV)
	@touch $@

archive-scale: setup
	$(BIN)/python -m tests.archive_scale $(SCALE)

# The CPU's code for 64-bit ARM, run by an emulator and judged by llvm-mca, which make test does not install: Debian's
# gcc-aarch64-linux-gnu, qemu-user and llvm
check-arm: setup
	$(BIN)/pytest -q -rs tests/gpu_delegate/targets/llvm/test_arm.py

# Whether tuning finds llvmpipe's own settings again, from those of hardware; some minutes, START=FAMILY BUDGET=600
tune-check: setup
	TEXELFLOW_TUNE=0 $(BIN)/python -m tests.tune_check --start $(START) --budget $(BUDGET)

bench: setup
	$(BIN)/texelflow bench frame --model selfie --size 640x480

# The versions that constraints/ locks, anew for one interpreter: make lock PYTHON=python3.12
lock:
	.ci/lock "$(PYTHON)"

clean:
	rm -rf $(VENV) .links out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find app gpu_delegate shaders assets tests examples -name __pycache__ -prune -exec rm -rf {} +
