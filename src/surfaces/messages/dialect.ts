/**
 * The protocol has dialects, told apart by the header `anthropic-version`. The newer ones know no
 * sampling parameters; one that is not known here is read as the newest.
 */
export type Dialect = {
  readonly takesSampling: boolean
  /** A version that is not known here, for the log. */
  readonly unknownVersion: string | null
}

const olderVersions = ['2023-01-01', '2023-06-01']
const newestVersion = '2026-10-21'

export function readDialect(headers: Headers): Dialect {
  const version = headers.get('anthropic-version')?.trim() || '2023-06-01'
  const takesSampling = olderVersions.includes(version)
  const isKnown = takesSampling || version === newestVersion
  return { takesSampling, unknownVersion: isKnown ? null : version }
}
