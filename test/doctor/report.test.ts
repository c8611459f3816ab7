import { expect, test } from 'bun:test'
import { fail, ok, skip, warn } from '#doctor/finding.ts'
import { placeOf, reasonOf } from '#doctor/format.ts'
import { bunFinding } from '#doctor/machine.ts'
import { renderReport, reportOf } from '#doctor/report.ts'

test('findings are columns, with the counts at the end', () => {
  const findings = [
    ok('bun', 'version 1.4.5'),
    warn('workers', 'workers: 4, processors: 2', 'Set fewer.'),
    skip('storage', 'there is no data folder yet'),
  ]
  expect(renderReport(reportOf(findings, []))).toBe(
    [
      'ok    bun      version 1.4.5',
      'warn  workers  workers: 4, processors: 2',
      '               -> Set fewer.',
      'skip  storage  there is no data folder yet',
      '',
      '1 ok, 1 warn, 0 fail, 1 skip',
      '',
    ].join('\n'),
  )
})

test('one failure makes the report fail', () => {
  const report = reportOf([ok('a', 'b'), fail('c', 'd', 'e')], [])
  expect(report.ok).toBe(false)
  expect(report.counts).toEqual({ ok: 1, warn: 0, fail: 1, skip: 0 })
})

test('secrets are redacted, also one that contains another', () => {
  const finding = fail('upstream "x"', 'it said: bad key sk-abcdef-123', 'Change sk-abcdef.')
  const { findings } = reportOf([finding], ['sk-abcdef', 'sk-abcdef-123', 'bad'])
  expect(findings[0]).toMatchObject({
    detail: 'it said: bad key [redacted]',
    advice: 'Change [redacted].',
  })
})

test('an old version of Bun fails', () => {
  expect(bunFinding('1.4.4')).toMatchObject({ verdict: 'fail' })
  expect(bunFinding('1.4.5').verdict).toBe('ok')
  expect(bunFinding('2.0.0').verdict).toBe('ok')
})

test('an address is printed without credential and query', () => {
  expect(placeOf('https://ann:secret@host.example:81/v1?key=secret#x')).toBe(
    'https://host.example:81/v1',
  )
  expect(placeOf('nonsense secret')).not.toContain('secret')
})

test('a reason lists its causes, each once', () => {
  const inner = Object.assign(new Error('connect failed'), { code: 'ECONNREFUSED' })
  expect(reasonOf(new Error('No answer.', { cause: inner }))).toBe(
    'No answer: connect failed, ECONNREFUSED',
  )
  expect(reasonOf(new Error('Same', { cause: new Error('Same') }))).toBe('Same')
  expect(reasonOf('a text')).toBe('a text')
})
