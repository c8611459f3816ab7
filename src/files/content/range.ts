/** Bytes from `start` to before `end`. */
export type ByteRange = { readonly start: number; readonly end: number }

/**
 * The one range that a `Range` header asks for (RFC 9110, 14.1.2). Null: answer with everything, as
 * for several ranges or a form that is not understood; `unsatisfiable`: there are no such bytes.
 */
export function readRange(
  header: string | null,
  bytes: number,
): ByteRange | 'unsatisfiable' | null {
  const asked = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  if (asked === null) return null
  const [, first = '', last = ''] = asked
  if (first === '' && last === '') return null
  if (first === '') {
    const count = Math.min(Number(last), bytes)
    return count === 0 ? 'unsatisfiable' : { start: bytes - count, end: bytes }
  }
  const start = Number(first)
  const end = last === '' ? bytes : Math.min(Number(last) + 1, bytes)
  if (last !== '' && Number(last) < start) return null
  return start >= bytes ? 'unsatisfiable' : { start, end }
}
