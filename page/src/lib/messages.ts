/** The interface’s texts. The compiler checks that both languages have the same entries. */

import { en } from "./messages.en";
import { es } from "./messages.es";

export type Messages = typeof en;
export type Language = "en" | "es";

export const catalogues: Record<Language, Messages> = { en, es };

/** Fills in the {placeholders} of a message. */
export const fill = (message: string, values: Record<string, string | number>): string =>
  message.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
