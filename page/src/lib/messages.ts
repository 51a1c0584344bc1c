/** The user interface strings. The compiler checks that both languages have the same keys. */

import { en } from "./messages.en";
import { es } from "./messages.es";

export type Messages = typeof en;
export type Language = "en" | "es";

export const catalogues: Record<Language, Messages> = { en, es };

/** Replaces the {placeholders} in a message with values. */
export const fill = (message: string, values: Record<string, string | number>): string =>
  message.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
