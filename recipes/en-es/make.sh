#!/bin/sh
# Prepare the data, train a packaged model for one session, and write its folder in the package:
#
#     sh make.sh DATA WORK DIRECTION TIME PYTHON [FROM]
#
# DIRECTION is en-es or es-en. FROM is the model to start from (default: the packaged one). You can interrupt the
# script at any time; run it again to resume. `make model` runs it, and recipes/en-es/model-log.md explains the
# choices. If TEACH is set to a time, such as 90m, teachers are trained for that time (teach.sh) and translate the
# monolingual sentences; otherwise the packaged models do.
set -eu
DATA=$1 WORK=$2 DIRECTION=$3 TIME=$4 PYTHON=${5:-python3} FROM=${6:-$3}
HERE=$(cd "$(dirname "$0")" && pwd) TO=$(dirname "$0")/../../src/vidrio/models/$DIRECTION
SOURCE=${DIRECTION%-*} TARGET=${DIRECTION#*-}
APART="--languages en,es --apart $WORK/newstest2012.tsv --apart $WORK/flores200-dev.tsv \
  --apart $WORK/tatoeba-test-v2020-07-28.tsv"

if [ ! -d "$WORK/train" ]; then
  rm -rf "$WORK/clean" && mkdir -p "$WORK/clean"
  for set in dev/newstest2012 dev/flores200-dev test/tatoeba-test-v2020-07-28; do
    paste "$DATA/$set.en" "$DATA/$set.es" > "$WORK/$(basename "$set").tsv"
  done
  "$PYTHON" "$HERE/corpora.py" sources "$DATA" "$WORK/sources"
  # Draw the held-out pairs only from the corpora of the first models, so that they stay the same when corpora are added.
  (cd "$WORK/sources" && cat dictionary.tsv general.tsv light.tsv more.tsv tatoeba.tsv tech.tsv) > "$WORK/all.tsv"
  "$PYTHON" -m vidrio data clean "$WORK/all.tsv" --to "$WORK/all-clean.tsv" --held-out 3000 \
    --held-out-to "$WORK/dev.tsv" $APART
  for corpus in tatoeba general light tech more dictionary books stories talk help terms senses voices written daily; do
    "$PYTHON" -m vidrio data clean "$WORK/sources/$corpus.tsv" --to "$WORK/clean/$corpus.tsv" --apart "$WORK/dev.tsv" $APART
  done
  "$PYTHON" -m vidrio data clean "$HERE/phrases.tsv" --to "$WORK/clean/phrases.tsv" --apart "$WORK/dev.tsv" $APART
  "$PYTHON" "$HERE/corpora.py" vary "$WORK/clean" "$WORK/varied"
  for made in lexicon frames; do
    "$PYTHON" "$HERE/$made.py" "$WORK/clean" "$WORK/varied" "$WORK/dev.tsv" "$WORK/newstest2012.tsv" \
      "$WORK/flores200-dev.tsv" "$WORK/tatoeba-test-v2020-07-28.tsv"
  done
  "$PYTHON" "$HERE/corpora.py" apart "$WORK/varied" "$WORK/tatoeba-test-v2020-07-28.tsv"
  "$PYTHON" "$HERE/corpora.py" alone "$DATA" "$WORK/alone"
  mv "$WORK/varied" "$WORK/train"
fi

# Translate monolingual sentences. The opposite direction trains on tagged translations as its
# source and the original sentences as its target. The same direction trains on the best translations as its target.
for FIRST in en es; do
  case $FIRST in en) SECOND=es ;; es) SECOND=en ;; esac
  ALONE=$WORK/alone/$FIRST
  if [ ! -f "$WORK/train/back-$FIRST.tsv" ]; then
    if [ "${TEACH-}" ]; then
      sh "$HERE/teach.sh" "$WORK" "$FIRST" "$TEACH" "$PYTHON"
      "$PYTHON" "$HERE/taught.py" "$DATA" "$WORK/clean" "$ALONE.txt" "$ALONE.scored" "$FIRST" "$ALONE.tsv"
      BEST=$ALONE.tsv
    else
      "$PYTHON" -m vidrio translate --model "$FIRST-$SECOND" --resume --input "$ALONE.txt" --output "$ALONE.out"
      case $FIRST in en) paste "$ALONE.txt" "$ALONE.out" ;; es) paste "$ALONE.out" "$ALONE.txt" ;; esac > "$ALONE.tsv"
      "$PYTHON" "$HERE/forward.py" "$ALONE.txt" "$ALONE.out" "$SECOND-$FIRST" "$ALONE.best.tsv"
      BEST=$ALONE.best.tsv
    fi
    "$PYTHON" -m vidrio data clean "$ALONE.tsv" --to "$ALONE.clean.tsv" --apart "$WORK/dev.tsv" $APART
    "$PYTHON" -m vidrio data clean "$BEST" --to "$WORK/train/forward-$FIRST.tsv" --apart "$WORK/dev.tsv" $APART
    case $FIRST in
    en) awk -F '\t' '{ print $1 "\t⟲ " $2 }' "$ALONE.clean.tsv" ;;
    es) awk -F '\t' '{ print "⟲ " $1 "\t" $2 }' "$ALONE.clean.tsv" ;;
    esac > "$ALONE.tagged.tsv"
    mv "$ALONE.tagged.tsv" "$WORK/train/back-$FIRST.tsv"
  fi
done
if [ ! -f "$WORK/train/.split" ]; then
  "$PYTHON" "$HERE/corpora.py" split "$DATA" "$WORK/train"
  : > "$WORK/train/.split"
fi
"$PYTHON" "$HERE/corpora.py" apart "$WORK/train" "$WORK/tatoeba-test-v2020-07-28.tsv"

# If the model has no case tokens, replace its tokenizer with one that has them.
FOLDER=$("$PYTHON" -c 'import sys, vidrio.model.find as f; print(f.find(sys.argv[1]).absolute())' "$FROM")
if ! grep -q '"⇧"' "$FOLDER/tokenizer.json"; then
  [ -f "$WORK/tokenizer.json" ] || "$PYTHON" "$HERE/tokens.py" "$WORK/train" "$WORK/alone" "$WORK/tokenizer.json"
  [ -f "$WORK/grown-$DIRECTION/config.json" ] ||
    "$PYTHON" "$HERE/grow.py" "$FOLDER" "$WORK/tokenizer.json" "$WORK/grown-$DIRECTION"
  FOLDER=../grown-$DIRECTION
fi

case $DIRECTION in en-es) COLUMNS=1,2 ;; es-en) COLUMNS=2,1 ;; esac
[ -f "$WORK/$DIRECTION/config.json" ] || (
  cd "$WORK/train" && "$PYTHON" -m vidrio train daily.tsv@6 written.tsv@3 tatoeba.tsv@2 general.tsv@0.5 voices.tsv@2 \
    more.tsv@0.2 light.tsv@0.1 tech.tsv@0.05 books.tsv@0.05 stories.tsv@0.1 talk.tsv help.tsv@0.05 dictionary.tsv@0.5 \
    terms.tsv@0.3 senses.tsv@0.05 words.tsv@0.2 lists.tsv@0.1 swapped.tsv@0.05 renamed.tsv@0.4 said.tsv unchanged.tsv@0.4 \
    phrases.tsv@1.5 counted.tsv@0.5 framed.tsv priced.tsv@0.7 facts.tsv named.tsv "typed-$SOURCE.tsv@0.5" \
    "back-$TARGET.tsv@0.3" "forward-$SOURCE.tsv" "forward-$SOURCE-loose.tsv@0.2" --keep-identical --keep-duplicates \
    --columns "$COLUMNS" --languages "$SOURCE,$TARGET" --dev ../dev.tsv --test ../tatoeba-test-v2020-07-28.tsv \
    --from "$FOLDER" --batch-tokens 8192 --optimiser muon --rate 6e-4 --warmup 50 --schedule linear --dropout 0.05 \
    --average 0.998 --metric loss --validations 3 --time "$TIME" --to "../$DIRECTION-trained" &&
    "$PYTHON" "$HERE/average.py" "$FOLDER" "../$DIRECTION-trained" 0.65 "../$DIRECTION"
)

"$PYTHON" "$HERE/ship.py" "$WORK" "$DIRECTION" "$TO"
