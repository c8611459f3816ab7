/**
 * A text without case and accents, as full-text search compares it: "Ärger" and "arger" are alike,
 * and so are "Straße" and "STRASSE".
 */
export function foldText(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toUpperCase().toLowerCase()
}
