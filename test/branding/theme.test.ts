import { beforeEach, describe, expect, test } from 'bun:test'
import { renderTheme } from '#branding/record.ts'
import { defaultTheme } from '#branding/theme.ts'
import {
  errorOf,
  outcome,
  type PortalUser,
  startPortalGateway,
  usePortalGateway,
} from '#test/support/portal-gateway.ts'

const fixture = usePortalGateway()
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const put = (json: unknown, headers: Record<string, string> = {}) =>
  send('admins', 'PUT /v1/branding/theme', { json, headers })
const read = (query = '') => send('users', `GET /v1/branding/theme${query}`)
const rendered = { ...renderTheme(defaultTheme), logo_url: expect.any(String) }

beforeEach(async () => {
  expect(outcome(await send('admins', 'POST /v1/branding/theme/reset'))).toBe('200')
})

test('the default theme is returned until one is set', async () => {
  const response = await read()
  expect([response.status, response.body]).toEqual([200, rendered])
})

test('PUT replaces the whole theme: omitted fields have their default', async () => {
  await put({ product_name: 'Portal', radius_px: 0, colors: { light: { primary: '#00f' } } })
  const response = await put({ mode: 'dark', font_scale: 1.25, product_name: null })
  const expected = { ...rendered, mode: 'dark', font_scale: 1.25 }
  expect([response.status, response.body]).toEqual([200, expected])
  expect((await read()).body).toEqual(expected)
})

test('every field is stored and returned in canonical form', async () => {
  const json = {
    product_name: '  Müller & Söhne <b> 📏 ',
    mode: 'light',
    colors: {
      light: { primary: '#ABC', background: '#FFFFFFFF', border: '#11223380' },
      dark: { primary: 'oklch(70% 0.1 250deg)', text: ' OKLCH(1 0 0 / 50%) ' },
    },
    radius_px: 32,
    font_family: `"Source Sans 3",'Inter',sans-serif`,
    font_scale: 0.75,
  }
  const { body } = await put(json)
  expect(body).toMatchObject({
    product_name: 'Müller & Söhne <b> 📏',
    mode: 'light',
    radius_px: 32,
    font_scale: 0.75,
    font_family: 'Source Sans 3, Inter, sans-serif',
    colors: {
      light: { primary: '#aabbcc', background: '#ffffff', border: '#11223380' },
      dark: { primary: '#6da3da', text: '#ffffff80' },
    },
  })
})

test('a theme can be sent back as it was read', async () => {
  await put({ product_name: 'Portal' })
  const { body } = await read()
  expect((await put(body)).body).toEqual(body)
})

test('reset restores the default theme', async () => {
  await put({ product_name: 'Portal' })
  const response = await send('admins', 'POST /v1/branding/theme/reset', { json: {} })
  expect([response.status, response.body]).toEqual([200, rendered])
  expect((await read()).body).toEqual(rendered)
  const unknownField = await send('admins', 'POST /v1/branding/theme/reset', {
    json: { mode: 'dark' },
  })
  expect(errorOf(unknownField)).toEqual([422, 'unknown_field', 'mode'])
})

describe('as a style sheet', () => {
  test('mode system has the variables of both schemes', async () => {
    await put({ colors: { dark: { primary: '#abcdef' } }, font_family: 'Inter, system-ui' })
    const sheet = await read('?format=css')
    expect(sheet.headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect(sheet.text).toContain('color-scheme: light dark;')
    expect(sheet.text).toContain('--brand-font-family: "Inter", system-ui;')
    expect(sheet.text).toContain('--brand-on-primary: #ffffff;')
    const [light, dark] = sheet.text.split('@media (prefers-color-scheme: dark)')
    expect(light).not.toContain('#abcdef')
    expect(dark).toContain('--brand-primary: #abcdef;')
  })

  test.each(['light', 'dark'] as const)(
    'mode %s has the variables of that scheme only',
    async (mode) => {
      await put({ mode })
      const { text } = await read('?format=css')
      expect(text).toContain(`color-scheme: ${mode};`)
      expect(text).toContain(`--brand-primary: ${defaultTheme.colors[mode].primary};`)
      expect(text).not.toContain('@media')
    },
  )
})

test('design tokens have the type of each value', async () => {
  await put({ colors: { light: { primary: '#33669980' } }, radius_px: 3, font_family: 'Inter' })
  const { body } = await read('?format=dtcg')
  expect(Object(body).color.$type).toBe('color')
  expect(Object(body).color.light.primary.$value).toEqual({
    colorSpace: 'srgb',
    components: [0.2, 0.4, 0.6],
    alpha: 0.502,
    hex: '#336699',
  })
  expect(Object(body).radius).toEqual({ $type: 'dimension', $value: { value: 3, unit: 'px' } })
  expect(Object(body).font.family).toEqual({ $type: 'fontFamily', $value: ['Inter'] })
})

test('other formats are refused', async () => {
  for (const format of ['xml', '', 'CSS']) {
    expect(errorOf(await read(`?format=${format}`))).toEqual([422, 'unprocessable', 'format'])
  }
})

describe('permissions', () => {
  const routes = [
    'GET /v1/branding/theme',
    'PUT /v1/branding/theme',
    'POST /v1/branding/theme/preview',
    'POST /v1/branding/theme/reset',
    'GET /v1/branding/logo',
    'DELETE /v1/branding/logo',
    'POST /v1/branding/logo',
  ]
  const users: [PortalUser, string[]][] = [
    ['anonymous', routes.map(() => '401 missing_credentials')],
    ['unpermitted', routes.map(() => '403 permission_denied')],
    ['users', routes.map((route) => (route.startsWith('GET') ? '200' : '403 permission_denied'))],
    ['admins', ['200', '200', '200', '200', '200', '204', '415 unsupported_image_type']],
  ]
  test.each(users)('%s', async (user, expected) => {
    const outcomes: string[] = []
    for (const route of routes) {
      const json = route.includes('theme') && !route.startsWith('GET') ? {} : undefined
      outcomes.push(outcome(await send(user, route, { json })))
    }
    expect(outcomes).toEqual(expected)
  })
})

describe('the entity tag', () => {
  const tagOf = async (query = '') => (await read(query)).headers.get('etag') ?? ''

  test('differs by format and theme', async () => {
    const formats = ['', '?format=css', '?format=dtcg']
    const first = await Promise.all(formats.map(tagOf))
    await put({ product_name: 'Portal' })
    const second = await Promise.all(formats.map(tagOf))
    expect(new Set([...first, ...second]).size).toBe(6)
    await send('admins', 'POST /v1/branding/theme/reset')
    expect(await Promise.all(formats.map(tagOf))).toEqual(first)
  })

  test('lets clients revalidate', async () => {
    for (const query of ['', '?format=css', '?format=dtcg']) {
      const tag = await tagOf(query)
      const headers = { 'if-none-match': tag }
      const response = await send('users', `GET /v1/branding/theme${query}`, { headers })
      expect([response.status, response.text, response.headers.get('etag')]).toEqual([304, '', tag])
    }
  })

  test('prevents lost updates', async () => {
    const stale = await tagOf()
    const { headers } = await put({ product_name: 'One' }, { 'if-match': stale })
    const late = await put({ product_name: 'Two' }, { 'if-match': stale })
    expect(outcome(late)).toBe('412 precondition_failed')
    expect(late.headers.get('etag')).toBe(headers.get('etag'))
    const reset = await send('admins', 'POST /v1/branding/theme/reset', {
      headers: { 'if-match': stale },
    })
    expect(outcome(reset)).toBe('412 precondition_failed')
    expect(reset.headers.get('etag')).toBe(headers.get('etag'))
    expect((await read()).body['product_name']).toBe('One')
    for (const tag of [headers.get('etag') ?? '', await tagOf('?format=css'), '*']) {
      expect(outcome(await put({ product_name: 'One' }, { 'if-match': tag }))).toBe('200')
    }
  })

  test('admits one of eight concurrent changes', async () => {
    const headers = { 'if-match': await tagOf() }
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, index) => put({ product_name: `Portal ${index}` }, headers)),
    )
    const late = Array(7).fill('412 precondition_failed')
    expect(responses.map(outcome).toSorted()).toEqual(['200', ...late])
  })

  test('stays valid for the theme when only the logo changes', async () => {
    const tag = await tagOf()
    const body = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h1"/></svg>'
    const headers = { 'content-type': 'image/svg+xml' }
    expect(outcome(await send('admins', 'POST /v1/branding/logo', { body, headers }))).toBe('200')
    expect(await tagOf()).not.toBe(tag)
    expect(outcome(await put({}, { 'if-match': tag }))).toBe('200')
    await send('admins', 'DELETE /v1/branding/logo')
  })
})

test('another replica returns the new theme and the same link at once', async () => {
  const other = await startPortalGateway(fixture.database)
  const { body } = await put({ product_name: 'Portal' })
  expect((await other.send('users', 'GET /v1/branding/theme')).body).toEqual(body)
  await other.stop()
})
