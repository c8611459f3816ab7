import { describe, expect, test } from 'bun:test'
import {
  errorOf,
  outcome,
  startPortalGateway,
  usePortalGateway,
} from '#test/support/portal-gateway.ts'

const fixture = usePortalGateway()
const preview = (json: unknown) =>
  fixture.gateway.send('admins', 'POST /v1/branding/theme/preview', { json })

type Pair = {
  pair: string
  ratio: number
  required: number
  pass: boolean
  suggestion: string | null
}

async function pairsOf(colors: object): Promise<Map<string, Pair>> {
  const { body } = await preview({ colors })
  const pairs: Pair[] = Object(body['contrast'])
  return new Map(pairs.map((pair) => [pair.pair, pair]))
}

test('a preview changes nothing', async () => {
  const before = await fixture.gateway.send('users', 'GET /v1/branding/theme')
  expect(outcome(await preview({ product_name: 'Portal', mode: 'dark' }))).toBe('200')
  const after = await fixture.gateway.send('users', 'GET /v1/branding/theme')
  expect(after.body).toEqual(before.body)
  expect(after.headers.get('etag')).toBe(before.headers.get('etag'))
})

test('a preview has the theme, CSS variables and contrast; the default theme has no warnings', async () => {
  const { body } = await preview({})
  expect(Object.keys(body)).toEqual(['theme', 'css_variables', 'contrast', 'warnings'])
  expect(body['warnings']).toEqual([])
  expect(Object(body['theme']).mode).toBe('system')
  expect(Object(body['css_variables'])).toMatchObject({
    root: { '--brand-radius': '8px', '--brand-font-scale': '1' },
    light: { '--brand-on-primary': '#ffffff' },
    dark: { '--brand-background': '#11151d' },
  })
  const pairs: Pair[] = Object(body['contrast'])
  expect(pairs).toBeArrayOfSize(20)
  for (const pair of pairs) expect(pair).toMatchObject({ pass: true, suggestion: null })
})

describe('contrast follows WCAG 2.2', () => {
  const known: [string, string, number][] = [
    ['#000000', '#ffffff', 21],
    ['#ffffff', '#ffffff', 1],
    ['#777777', '#ffffff', 4.47],
    ['#767676', '#ffffff', 4.54],
    ['#ff0000', '#ffffff', 3.99],
    ['#0000ff', '#ffff00', 8],
    // Half-transparent black on white is #7f7f7f.
    ['#00000080', '#ffffff', 4],
  ]
  test.each(known)('%s on %s: %d', async (text, background, ratio) => {
    const pairs = await pairsOf({ light: { text, background } })
    expect(pairs.get('light.text/background')?.ratio).toBe(ratio)
  })

  test('text requires 4.5, controls 3', async () => {
    const pairs = await pairsOf({
      light: { text: '#777777', muted: '#767676', primary: '#949494', danger: '#959595' },
    })
    const outcomeOf = (name: string) => {
      const pair = pairs.get(`light.${name}/background`)
      return [pair?.required, pair?.pass]
    }
    expect(outcomeOf('text')).toEqual([4.5, false])
    expect(outcomeOf('muted')).toEqual([4.5, true])
    expect(outcomeOf('primary')).toEqual([3, true])
    expect(outcomeOf('danger')).toEqual([3, false])
  })
})

test('each failing pair has the nearest passing colour as a suggestion', async () => {
  const colors = {
    light: { text: '#9aa0a6', muted: '#ffff00', primary: '#00ffff', on_primary: '#ffffff' },
    dark: { text: '#444444', muted: '#0000aa', danger: '#300000', background: '#101010' },
  }
  const first = await pairsOf(colors)
  const failing = [...first.values()].filter(({ pass }) => !pass)
  expect(failing.length).toBeGreaterThan(6)
  for (const { pair, suggestion } of failing) {
    expect(suggestion).toMatch(/^#[0-9a-f]{6}$/)
    const [scheme = '', name = ''] = pair.split(/[./]/)
    const palette = { ...Object(colors)[scheme], [name]: suggestion }
    const again = (await pairsOf({ ...colors, [scheme]: palette })).get(pair)
    expect(again?.pass, pair).toBe(true)
    // A colour slightly nearer to the requested one would fail.
    expect(again?.ratio).toBeLessThan((again?.required ?? 0) + 0.35)
  }
})

test('warnings name the field, the problem and a passing colour', async () => {
  const { body } = await preview({
    colors: { light: { text: '#999' }, dark: { primary: 'oklch(0.7 0.4 150)' } },
  })
  const warnings: { code: string; param: string; message: string }[] = Object(body['warnings'])
  expect(warnings.map(({ code, param }) => [code, param])).toEqual([
    ['contrast_too_low', 'colors.light.text'],
    ['contrast_too_low', 'colors.light.text'],
    ['color_out_of_gamut', 'colors.dark.primary'],
  ])
  expect(warnings[0]?.message).toMatch(
    /a contrast of 2\.84; at least 4\.5 is required\. #\w{6} would pass/,
  )
  expect(Object(body['theme']).colors.dark.primary).toMatch(/^#[0-9a-f]{6}$/)
})

test('enforced contrast refuses a theme and still allows its preview', async () => {
  const strict = await startPortalGateway(fixture.database, { branding: { enforceContrast: true } })
  const json = { colors: { dark: { muted: '#222' } } }
  const refusal = await strict.send('admins', 'PUT /v1/branding/theme', { json })
  expect(errorOf(refusal)).toEqual([422, 'contrast_too_low', 'colors.dark.muted'])
  expect(Object(refusal.body['error']).message).toContain('would pass')
  expect(outcome(await strict.send('admins', 'POST /v1/branding/theme/preview', { json }))).toBe(
    '200',
  )
  expect(outcome(await strict.send('admins', 'PUT /v1/branding/theme', { json: {} }))).toBe('200')
  expect(outcome(await fixture.gateway.send('admins', 'PUT /v1/branding/theme', { json }))).toBe(
    '200',
  )
  await strict.stop()
})
