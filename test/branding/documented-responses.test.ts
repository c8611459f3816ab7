import { expect, test } from 'bun:test'
import { designTokensRecord, themeRecord } from '#branding/record.ts'
import { schemaFaults } from '#test/support/described-answers.ts'
import { useDescribedGateway } from '#test/support/described-gateway.ts'

const fixture = useDescribedGateway()
const lowContrast = {
  colors: { light: { primary: '#ffff00' }, dark: { text: 'oklch(0.7 0.4 150)' } },
}
const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><path d="M0 0h9"/></svg>'

test('theme responses match their documentation', async () => {
  const { ask } = fixture
  const { body, headers } = await ask('PUT /v1/branding/theme', { json: lowContrast })
  expect(schemaFaults(themeRecord, body)).toEqual([])
  const known = { headers: { 'if-none-match': headers.get('etag') ?? '' } }
  expect((await ask('GET /v1/branding/theme', known)).status).toBe(304)
  expect((await ask('GET /v1/branding/theme?format=css', { as: 'ann' })).text).toStartWith(':root')
  const tokens = await ask('GET /v1/branding/theme?format=dtcg')
  expect(schemaFaults(designTokensRecord, tokens.body)).toEqual([])
  const preview = await ask('POST /v1/branding/theme/preview', { json: lowContrast })
  const codes = [{ code: 'contrast_too_low' }, { code: 'color_out_of_gamut' }]
  for (const code of codes) {
    expect(preview.body['warnings']).toContainEqual(expect.objectContaining(code))
  }
  expect((await ask('POST /v1/branding/theme/reset')).status).toBe(200)
})

test('logo responses match their documentation', async () => {
  const { ask } = fixture
  const file = new File([svg], 'logo.svg')
  const form = new FormData()
  form.append('file', file)
  const { body, headers } = await ask('POST /v1/branding/logo', { body: form })
  expect(body['sanitized']).not.toEqual([])
  const tag = headers.get('etag') ?? ''
  expect((await ask('GET /v1/branding/logo')).text).toStartWith('<svg')
  const known = { headers: { 'if-none-match': tag } }
  expect((await ask('GET /v1/branding/logo', known)).status).toBe(304)
  const expected = { headers: { 'if-match': tag } }
  expect((await ask('DELETE /v1/branding/logo', expected)).status).toBe(204)
  expect((await ask('DELETE /v1/branding/logo', expected)).status).toBe(412)
})

test('error responses match their documentation', async () => {
  const { ask } = fixture
  const themes = [{ radius_px: 33 }, { colors: { light: { text: 'red' } } }, { colour: 1 }]
  for (const json of [...themes, { font_family: 'a;b' }]) {
    expect((await ask('PUT /v1/branding/theme', { json })).status).toBe(422)
    expect((await ask('POST /v1/branding/theme/preview', { json })).status).toBe(422)
  }
  const headers = { 'if-match': '"stale"' }
  expect((await ask('PUT /v1/branding/theme', { json: {}, headers })).status).toBe(412)
  expect((await ask('POST /v1/branding/theme/reset', { headers })).status).toBe(412)
  expect((await ask('POST /v1/branding/theme/reset', { json: { a: 1 } })).status).toBe(422)
  expect((await ask('GET /v1/branding/theme?format=pdf')).status).toBe(422)
  const post = async (body: string | FormData, type?: string) => {
    const sent = { body, headers: type === undefined ? {} : { 'content-type': type } }
    return (await ask('POST /v1/branding/logo', sent)).status
  }
  expect(await post(svg, 'text/plain')).toBe(415)
  expect(
    await post(
      `<!DOCTYPE svg [<!ENTITY a "${'a'.repeat(5_000)}"><!ENTITY b "&a;">]>${svg}`,
      'image/svg+xml',
    ),
  ).toBe(422)
  expect(await post('x'.repeat(524_289), 'image/png')).toBe(413)
  const form = new FormData()
  form.append('picture', 'x')
  expect(await post(form)).toBe(422)
})
