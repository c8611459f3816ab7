const form =
  /^(\d{4}-\d{2}-\d{2})(T([01]\d|2[0-3]):\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/

/** A date (midnight in UTC) or a time with its zone, as RFC 3339 writes them; null for anything else. */
export function parseInstant(text: string): Date | null {
  const date = form.exec(text)?.[1]
  if (date === undefined) return null
  const day = new Date(date)
  const at = new Date(text)
  if (Number.isNaN(day.getTime()) || Number.isNaN(at.getTime())) return null
  // February 30 parses as a day of March.
  return day.toISOString().startsWith(date) ? at : null
}
