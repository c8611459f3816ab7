import type { Finding, Verdict } from './finding.ts'

/** Findings as text and as JSON. */

export type Report = {
  /** True if no check failed. */
  readonly ok: boolean
  readonly counts: Readonly<Record<Verdict, number>>
  readonly findings: readonly Finding[]
}

const hidden = '[redacted]'
/** Shorter values may be ordinary words. */
const secretCharsMin = 6
const verdictColumns = 6
const checkColumnsMax = 28

/** Removes the secrets of the configuration, which servers may quote. */
export function reportOf(findings: readonly Finding[], secrets: readonly string[]): Report {
  const clean = (text: string) => withoutSecrets(text, secrets)
  const cleaned = findings.map(({ verdict, check, detail, advice }) => ({
    verdict,
    check: clean(check),
    detail: clean(detail),
    advice: advice === null ? null : clean(advice),
  }))
  const count = (verdict: Verdict) =>
    cleaned.filter((finding) => finding.verdict === verdict).length
  const counts = { ok: count('ok'), warn: count('warn'), fail: count('fail'), skip: count('skip') }
  return { ok: counts.fail === 0, counts, findings: cleaned }
}

/** One line per finding, the remedy below it, and the counts at the end. */
export function renderReport({ findings, counts }: Report): string {
  const width = Math.min(checkColumnsMax, Math.max(...findings.map(({ check }) => check.length)))
  const indent = ' '.repeat(verdictColumns + width + 2)
  const lines = findings.flatMap(({ verdict, check, detail, advice }) => [
    `${verdict.padEnd(verdictColumns)}${check.padEnd(width)}  ${detail}`,
    ...(advice === null ? [] : [`${indent}-> ${advice}`]),
  ])
  const sums = `${counts.ok} ok, ${counts.warn} warn, ${counts.fail} fail, ${counts.skip} skip`
  return `${[...lines, '', sums].join('\n')}\n`
}

/** In JSON the detail of a finding is called `told`. */
export function renderJson({ findings, ...report }: Report): string {
  const rendered = findings.map(({ detail: told, ...finding }) => ({ ...finding, told }))
  return `${JSON.stringify({ ...report, findings: rendered }, null, 2)}\n`
}

/** The longest first, because one may contain another. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter(({ length }) => length >= secretCharsMin)
    .toSorted((one, other) => other.length - one.length)
    .reduce((shown, secret) => shown.replaceAll(secret, hidden), text)
}
