#!/bin/sh
# The packaged models, from their data to their folder in the package:
#
#     sh make.sh DATA WORK DIRECTION TIME PYTHON      DIRECTION: en-es or es-en; TIME: of each of the two trainings
#
# It can be stopped at any moment and goes on where it was. Run by `make model`; docs/model-log.md tells why it is so.
set -eu
DATA=$1 WORK=$2 DIRECTION=$3 TIME=$4 PYTHON=${5:-python3}
HERE=$(dirname "$0") TO=$(dirname "$0")/../../src/vidrio/models/$DIRECTION
case $DIRECTION in en-es) COLUMNS=1,2 LANGUAGES=en,es ;; es-en) COLUMNS=2,1 LANGUAGES=es,en ;; esac

if [ ! -d "$WORK/train" ]; then
  rm -rf "$WORK/clean" && mkdir -p "$WORK/clean"
  for set in dev/newstest2012 dev/flores200-dev test/tatoeba-test-v2020-07-28; do
    paste "$DATA/$set.en" "$DATA/$set.es" > "$WORK/$(basename "$set").tsv"
  done
  "$PYTHON" "$HERE/corpora.py" sources "$DATA" "$WORK/sources"
  cat "$WORK"/sources/*.tsv > "$WORK/all.tsv"
  set -- --languages en,es --apart "$WORK/newstest2012.tsv" --apart "$WORK/flores200-dev.tsv" \
    --apart "$WORK/tatoeba-test-v2020-07-28.tsv"
  "$PYTHON" -m vidrio data clean "$WORK/all.tsv" --to "$WORK/all-clean.tsv" --held-out 3000 --held-out-to "$WORK/dev.tsv" "$@"
  for corpus in tatoeba general light tech more dictionary; do
    "$PYTHON" -m vidrio data clean "$WORK/sources/$corpus.tsv" --to "$WORK/clean/$corpus.tsv" --apart "$WORK/dev.tsv" "$@"
  done
  "$PYTHON" -m vidrio data clean "$HERE/phrases.tsv" --to "$WORK/clean/phrases.tsv" --apart "$WORK/dev.tsv" "$@"
  "$PYTHON" "$HERE/corpora.py" vary "$WORK/clean" "$WORK/varied"
  "$PYTHON" "$HERE/corpora.py" apart "$WORK/varied" "$WORK/tatoeba-test-v2020-07-28.tsv"
  mv "$WORK/varied" "$WORK/train"
fi

train() {
  (cd "$WORK/train" && "$PYTHON" -m vidrio train "$@" --keep-identical --columns "$COLUMNS" --languages "$LANGUAGES" \
    --dev ../dev.tsv --test ../tatoeba-test-v2020-07-28.tsv --dropout 0.1 --subword-dropout 0.05)
}

# First everything; then, with a rate that falls to 0 once more, most of what people ask a translator for.
[ -f "$WORK/$DIRECTION-first/config.json" ] || train tatoeba.tsv@3 general.tsv light.tsv more.tsv@0.5 tech.tsv@0.3 dictionary.tsv unchanged.tsv@0.5 phrases.tsv \
  --preset small --encoder-layers 6 --vocabulary 8000 --batch-tokens 6144 --time "$TIME" --to "../$DIRECTION-first"
[ -f "$WORK/$DIRECTION-second/config.json" ] || train tatoeba.tsv@3 general.tsv@0.6 light.tsv@0.6 more.tsv@0.3 tech.tsv@0.2 dictionary.tsv@3 unchanged.tsv@1.5 \
  phrases.tsv@4 --from "../$DIRECTION-first" --batch-tokens 4096 --rate 7e-4 --warmup 200 --time "$TIME" --to "../$DIRECTION-second"
# Last, a minute of words and greetings as people type them.
[ -f "$WORK/$DIRECTION/config.json" ] || train tatoeba.tsv@0.3 general.tsv@0.15 dictionary.tsv@0.3 unchanged.tsv@0.3 \
  phrases.tsv@6 --keep-duplicates --from "../$DIRECTION-second" --batch-tokens 4096 --rate 2e-4 --warmup 20 \
  --average 0.97 --steps 260 --validations 2 --to "../$DIRECTION"

"$PYTHON" "$HERE/ship.py" "$WORK" "$DIRECTION" "$TO"
