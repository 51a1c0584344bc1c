/** What the interface says. The compiler checks that Spanish has every entry that English has. */

import { en } from "./messages.en";
import { es } from "./messages.es";

export type Messages = typeof en;
export type Language = "en" | "es";

export const catalogues: Record<Language, Messages> = { en, es };

/** A message with its {places} filled in. */
export const fill = (message: string, places: Record<string, string | number>): string =>
  message.replace(/\{(\w+)\}/g, (whole, name: string) => String(places[name] ?? whole));
