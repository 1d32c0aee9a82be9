#!/usr/bin/env bash
# The compiled modules under AddressSanitizer and UndefinedBehaviorSanitizer: built aside, then given the seeds, what was
# learned, and so many mutations of both, of each target that reaches them. Fails on the first report.
#
#     tests/fuzz/asan.sh [MUTATIONS] [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mutations=${1:-100000}
shift || true
targets=("$@")
[ $# -gt 0 ] || targets=(pubsub session access mesh)
python=$PWD/.venv/bin/python
aside=$PWD/.fuzz/asan
log=$aside/report
checks=-fsanitize=address,undefined

command -v gcc >/dev/null || { echo "asan.sh needs gcc; install it, on Debian: apt-get install gcc" >&2; exit 1; }
libraries=
for name in libasan.so libubsan.so; do
	found=$(gcc -print-file-name=$name)
	[ -e "$found" ] || { echo "gcc has no $name; install it, on Debian: apt-get install gcc" >&2; exit 1; }
	libraries="$libraries $(realpath "$found")"
done

# The sources, and what was made of them before by these very flags.
mkdir -p "$aside"
for name in skywalker workers tests; do
	mkdir -p "$aside/$name"
	tar -ch --exclude='*.so' --exclude=__pycache__ "$name" | tar -x -C "$aside"
done
cp setup.py pyproject.toml README.md LICENSE "$aside/"
cp -r .fuzz/corpus "$aside/.fuzz-corpus" 2>/dev/null || true
echo "building in $aside" >&2
(
	export SKYWALKER_ASSERTIONS=1 LDFLAGS=$checks
	export CFLAGS="$checks -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
	cd "$aside" && "$python" setup.py -q build_ext --inplace
)
[ -n "$(find "$aside/workers/core" -name '_core.*.so')" ] || { echo "nothing was compiled, see above" >&2; exit 1; }

# Python never gives back all of its memory, so what leaks is found by the targets that count what is held.
export LD_PRELOAD="$libraries" PYTHONMALLOC=malloc
export ASAN_OPTIONS="detect_leaks=0:halt_on_error=1:abort_on_error=0:exitcode=99:log_path=$log:allocator_may_return_null=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:exitcode=99:log_path=$log"
rm -f "$log".*
status=0
cd "$aside"
mkdir -p .fuzz
rm -rf .fuzz/corpus
[ ! -d .fuzz-corpus ] || mv .fuzz-corpus .fuzz/corpus
for target in "${targets[@]}"; do
	"$python" -m tests.fuzz "$target" --mutate "$mutations" || status=1
done
if compgen -G "$log.*" >/dev/null; then
	cat "$log".* >&2
	status=1
fi
[ $status != 0 ] || echo "no report"
exit $status
