/**
 * Removes case and accents, as full-text search does: "Ärger" equals "arger", "Straße" equals
 * "STRASSE".
 */
export function foldText(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toUpperCase().toLowerCase()
}
