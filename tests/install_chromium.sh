#!/bin/sh
# Chromium for the tests that look at a page as a browser does. Installs Chromium if that needs no password. Otherwise,
# the tests that need it are skipped with a message. This script never fails.
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" > /dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ]; then
  sudo=""
elif command -v sudo > /dev/null 2>&1 && sudo -n true 2> /dev/null; then
  sudo="sudo -n"
else
  echo "Chromium is not installed, and installing it needs root: the tests that need it will be skipped." >&2
  exit 0
fi
if command -v apt-get > /dev/null 2>&1; then
  echo "Installing Chromium for the tests …" >&2
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq > /dev/null && $sudo apt-get install -y -qq --no-install-recommends chromium > /dev/null
elif command -v dnf > /dev/null 2>&1; then
  $sudo dnf install -y -q chromium > /dev/null
elif command -v apk > /dev/null 2>&1; then
  $sudo apk add -q chromium
fi || echo "Chromium could not be installed: the tests that need it will be skipped." >&2
exit 0
