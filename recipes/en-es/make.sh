#!/bin/sh
# The packaged models, from their data to their folder in the package:
#
#     sh make.sh DATA WORK DIRECTION TIME PYTHON [packaged]      DIRECTION: en-es or es-en; TIME: of each training
#
# From nothing, or with `packaged` from the models that are packaged: then only the last training is done. It can be stopped
# at any moment and goes on where it was. Run by `make model`; docs/model-log.md tells why it is so.
set -eu
DATA=$1 WORK=$2 DIRECTION=$3 TIME=$4 PYTHON=${5:-python3} FROM=${6:-}
HERE=$(dirname "$0") TO=$(dirname "$0")/../../src/vidrio/models/$DIRECTION

if [ ! -d "$WORK/train" ]; then
  rm -rf "$WORK/clean" && mkdir -p "$WORK/clean"
  for set in dev/newstest2012 dev/flores200-dev test/tatoeba-test-v2020-07-28; do
    paste "$DATA/$set.en" "$DATA/$set.es" > "$WORK/$(basename "$set").tsv"
  done
  "$PYTHON" "$HERE/corpora.py" sources "$DATA" "$WORK/sources"
  # The held-out pairs are drawn from the corpora that the first models had: they stay what they were.
  (cd "$WORK/sources" && cat dictionary.tsv general.tsv light.tsv more.tsv tatoeba.tsv tech.tsv) > "$WORK/all.tsv"
  set -- --languages en,es --apart "$WORK/newstest2012.tsv" --apart "$WORK/flores200-dev.tsv" \
    --apart "$WORK/tatoeba-test-v2020-07-28.tsv"
  "$PYTHON" -m vidrio data clean "$WORK/all.tsv" --to "$WORK/all-clean.tsv" --held-out 3000 --held-out-to "$WORK/dev.tsv" "$@"
  for corpus in tatoeba general light tech more dictionary books stories talk help terms senses voices written; do
    "$PYTHON" -m vidrio data clean "$WORK/sources/$corpus.tsv" --to "$WORK/clean/$corpus.tsv" --apart "$WORK/dev.tsv" "$@"
  done
  "$PYTHON" -m vidrio data clean "$HERE/phrases.tsv" --to "$WORK/clean/phrases.tsv" --apart "$WORK/dev.tsv" "$@"
  "$PYTHON" "$HERE/corpora.py" vary "$WORK/clean" "$WORK/varied"
  for made in lexicon frames; do
    "$PYTHON" "$HERE/$made.py" "$WORK/clean" "$WORK/varied" "$WORK/dev.tsv" "$WORK/newstest2012.tsv" \
      "$WORK/flores200-dev.tsv" "$WORK/tatoeba-test-v2020-07-28.tsv"
  done
  "$PYTHON" "$HERE/corpora.py" apart "$WORK/varied" "$WORK/tatoeba-test-v2020-07-28.tsv"
  mv "$WORK/varied" "$WORK/train"
fi

train() {
  (cd "$WORK/train" && "$PYTHON" -m vidrio train --keep-identical --columns "$COLUMNS" --languages "$LANGUAGES" \
    --dev ../dev.tsv --test ../tatoeba-test-v2020-07-28.tsv --dropout 0.1 --subword-dropout 0.05 "$@")
}

# back LANGUAGE MODEL TO: sentences of one language alone, with their translation into the other by MODEL, as pairs.
back() {
  if [ ! -f "$WORK/train/$3.tsv" ]; then
    "$PYTHON" "$HERE/corpora.py" alone "$DATA" "$WORK/alone"
    "$PYTHON" -m vidrio translate --model "$2" --beam 2 --resume --input "$WORK/alone/$1.txt" --output "$WORK/alone/$3.out"
    case $1 in
    en) paste "$WORK/alone/en.txt" "$WORK/alone/$3.out" ;;
    es) paste "$WORK/alone/$3.out" "$WORK/alone/es.txt" ;;
    esac > "$WORK/alone/$3.tsv"
    "$PYTHON" -m vidrio data clean "$WORK/alone/$3.tsv" --to "$WORK/alone/clean.tsv" --languages en,es \
      --apart "$WORK/newstest2012.tsv" --apart "$WORK/flores200-dev.tsv" --apart "$WORK/tatoeba-test-v2020-07-28.tsv" \
      --apart "$WORK/dev.tsv"
    mv "$WORK/alone/clean.tsv" "$WORK/train/$3.tsv"
    "$PYTHON" "$HERE/corpora.py" apart "$WORK/train" "$WORK/tatoeba-test-v2020-07-28.tsv"
  fi
}

# direction SOURCE,TARGET: of what is trained from here on.
direction() {
  LANGUAGES=$1
  case $1 in en,es) COLUMNS=1,2 ;; es,en) COLUMNS=2,1 ;; esac
}

from_nothing() {
  # First everything; then, with a rate that falls to 0 once more, most of what people ask a translator for.
  direction en,es
  [ -f "$WORK/en-es-first/config.json" ] || train tatoeba.tsv@3 general.tsv light.tsv more.tsv@0.5 tech.tsv@0.3 \
    dictionary.tsv unchanged.tsv@0.5 phrases.tsv --preset small --encoder-layers 6 --vocabulary 8000 --batch-tokens 6144 \
    --time "$TIME" --to ../en-es-first
  [ -f "$WORK/en-es-second/config.json" ] || train tatoeba.tsv@3 general.tsv@0.6 light.tsv@0.6 more.tsv@0.3 tech.tsv@0.2 \
    dictionary.tsv@3 unchanged.tsv@1.5 phrases.tsv@4 --from ../en-es-first --batch-tokens 4096 --rate 7e-4 --warmup 200 \
    --time "$TIME" --to ../en-es-second

  # The other direction learns on from there (the words of both languages are known), also from English alone; and the
  # first direction from Spanish alone.
  back en "$WORK/en-es-second" back-en-first
  direction es,en
  [ -f "$WORK/es-en-first/config.json" ] || train tatoeba.tsv@3 general.tsv@0.7 light.tsv@0.6 more.tsv@0.4 tech.tsv@0.2 \
    dictionary.tsv@2 unchanged.tsv@1 phrases.tsv@3 back-en-first.tsv@0.5 --keep-duplicates --from ../en-es-second \
    --batch-tokens 4096 --rate 1.2e-3 --warmup 300 --time "$TIME" --to ../es-en-first
  back es "$WORK/es-en-first" back-es
  direction en,es
  [ -f "$WORK/en-es-third/config.json" ] || train tatoeba.tsv@3 general.tsv@0.8 light.tsv@0.6 more.tsv@0.5 tech.tsv@0.2 \
    dictionary.tsv@2 unchanged.tsv@1 phrases.tsv@4 back-es.tsv@0.5 --keep-duplicates --from ../en-es-second \
    --batch-tokens 4096 --rate 1e-3 --warmup 300 --time "$TIME" --to ../en-es-third

  # Then each with the words that are rare, in lists and in sentences, and with other names (lexicon.py).
  RARE="tatoeba.tsv@2 renamed.tsv tech.tsv@0.2 dictionary.tsv@1.5 words.tsv@1.5 lists.tsv@0.5 swapped.tsv@0.6 said.tsv@2
    unchanged.tsv phrases.tsv@3"
  case $DIRECTION in
  en-es)
    [ -f "$WORK/en-es-fourth/config.json" ] || train $RARE general.tsv@0.8 light.tsv@0.6 more.tsv@0.5 back-es.tsv@0.5 \
      --keep-duplicates --from ../en-es-third --batch-tokens 4096 --rate 8e-4 --warmup 300 --time "$TIME" --to ../en-es-fourth
    BEFORE=../en-es-fourth
    ;;
  es-en)
    back en "$WORK/en-es-third" back-en
    direction es,en
    [ -f "$WORK/es-en-second/config.json" ] || train $RARE general.tsv@0.7 light.tsv@0.6 more.tsv@0.4 back-en.tsv@0.5 \
      --keep-duplicates --from ../es-en-first --batch-tokens 4096 --rate 8e-4 --warmup 300 --time "$TIME" --to ../es-en-second
    BEFORE=../es-en-second
    ;;
  esac
}

# Sentences of one language alone are then translated by the packaged model of the other direction.
from_packaged() {
  case $DIRECTION in
  en-es)
    back es es-en back-es
    direction en,es
    ;;
  es-en)
    back en en-es back-en
    direction es,en
    ;;
  esac
  BEFORE=$DIRECTION
}

"from_${FROM:-nothing}"

# At last with all that there is, numbers and things of everyday life (frames.py) among it.
ALL="tatoeba.tsv@3 renamed.tsv general.tsv@1.5 more.tsv@0.7 light.tsv@0.5 tech.tsv@0.1 books.tsv@0.4 stories.tsv@0.5
  talk.tsv@2 help.tsv@0.2 dictionary.tsv terms.tsv senses.tsv@0.15 words.tsv@0.7 lists.tsv@0.3 swapped.tsv@0.4 said.tsv@2
  unchanged.tsv phrases.tsv@2 counted.tsv@2 framed.tsv@2 named.tsv@2"
case $DIRECTION in
en-es) MORE="typed-en.tsv back-es.tsv@0.5" ;;
es-en) MORE="typed-es.tsv back-en.tsv@0.4" ;;
esac
[ -f "$WORK/$DIRECTION/config.json" ] || train $ALL $MORE --keep-duplicates --from "$BEFORE" \
  --batch-tokens 8192 --rate 8e-4 --warmup 60 --dropout 0.05 --average 0.997 --validations 6 --metric loss \
  --time "$TIME" --to "../$DIRECTION"

"$PYTHON" "$HERE/ship.py" "$WORK" "$DIRECTION" "$TO"
