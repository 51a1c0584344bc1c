/** What the table of quantities says of each, in Spanish. A test keeps it whole. */
export const SPANISH: Record<string, string> = {};
