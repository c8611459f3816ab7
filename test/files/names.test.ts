import { describe, expect, test } from 'bun:test'
import { outcome } from '#test/support/file-gateway.ts'
import { ann, fresh, useFileGateway } from './fixture.ts'

const fixture = useFileGateway()

function make(name: unknown, folderId: string | null = null) {
  return fixture.gateway.send(ann, '/v1/folders', { json: { name, folder_id: folderId } })
}

describe('a name is refused', () => {
  const refused: [string, unknown][] = [
    ['that is empty', ''],
    ['of nothing but space', ' \u00a0\u3000'],
    ['only invisible characters', '\u200b\u2060'],
    ['with a slash', 'a/b'],
    ['with a backslash', 'a\\b'],
    ['that is this folder', '.'],
    ['that is the folder above', ' .. '],
    ['with a NUL', 'a\0b'],
    ['with a control character', 'a\u0085b'],
    ['of two lines', 'a\nb'],
    ['with a separator of lines', 'a\u2028b'],
    ['that turns the writing round', 'invoice\u202efdp.exe'],
    ['with half a character', 'a\ud800'],
    ['of 256 bytes', 'x'.repeat(256)],
    ['of 256 bytes in 128 letters', '\u00e4'.repeat(128)],
    ['that is much too long', 'x'.repeat(10_000)],
    ['that is a number', 5],
    ['that is null', null],
  ]

  test.each(refused)('%s, in every endpoint', async (_, name) => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('folder'))
    const file = await gateway.upload(ann, fresh('file'))
    const responses = [
      await make(name),
      await gateway.send(ann, `/v1/folders/${folder}`, { method: 'PATCH', json: { name } }),
      await gateway.send(ann, `/v1/files/${file}`, { method: 'PATCH', json: { name } }),
    ]
    for (const response of responses) {
      expect([response.status, Object(response.body['error']).param]).toEqual([422, 'name'])
    }
    const { body } = await gateway.send(ann, `/v1/files/${file}`)
    expect(body['version']).toBe(1)
    if (typeof name === 'string') {
      await expect(gateway.upload(ann, name)).rejects.toMatchObject({ status: 422 })
    }
  })
})

test('a name may have 255 bytes of any printable text', async () => {
  const names = [
    'x'.repeat(255),
    '\u20ac'.repeat(85),
    '\u00a7 %_* "q" <b> \u{1f469}\u200d\u{1f680}',
    '...',
    'a.',
  ]
  for (const name of names) {
    const { status, body } = await make(name)
    expect([status, body['name']]).toEqual([201, name])
  }
})

test('a name is stored trimmed and in form NFC', async () => {
  const { body } = await make('  Re\u0301sume\u0301  ')
  expect(body['name']).toBe('R\u00e9sum\u00e9')
})

describe('names in one folder', () => {
  const same: [string, string, string][] = [
    ['case', 'Report', 'rEPORT'],
    ['case beyond ASCII', '\u00c9T\u00c9', '\u00e9t\u00e9'],
    ['the composition of letters', '\u00e9', 'e\u0301'],
    ['the sigma at an end', '\u039f\u0394\u039f\u03a3', '\u03bf\u03b4\u03bf\u03c2'],
    ['invisible characters', 'draft', 'dra\u200bft'],
    ['a sign for the Kelvin', '1 k', '1 \u212a'],
  ]
  test.each(same)('that differ only in %s conflict', async (_, first, second) => {
    const folder = await fixture.gateway.folder(ann, fresh('same'))
    expect(outcome(await make(first, folder))).toBe('201')
    expect(outcome(await make(second, folder))).toBe('409 name_conflict')
  })

  const different: [string, string, string][] = [
    ['letters of another script', 'a', '\u0430'],
    ['a letter and what it is short for', 'stra\u00dfe', 'strasse'],
    ['a ligature and its letters', '\ufb01le', 'file'],
    ['dotless and dotted letters', 's\u0131r', 'sir'],
    ['dotted capitals', '\u0130', 'i'],
    ['accents', 'resume', 'r\u00e9sum\u00e9'],
    ['wide letters', '\uff21', 'A'],
    ['signs that are like a slash', 'a\u2215b', 'a\u2044b'],
  ]
  test.each(different)('that look alike by %s do not conflict', async (_, first, second) => {
    const folder = await fixture.gateway.folder(ann, fresh('different'))
    expect(outcome(await make(first, folder))).toBe('201')
    expect(outcome(await make(second, folder))).toBe('201')
  })
})

describe('a taken name', () => {
  test('is refused for files and folders, and is free in another folder', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('taken'))
    await gateway.upload(ann, 'Notes.txt', { folderId: folder })
    expect(outcome(await make('notes.TXT', folder))).toBe('409 name_conflict')
    const upload = gateway.upload(ann, 'NOTES.txt', { folderId: folder })
    await expect(upload).rejects.toMatchObject({ status: 409, wireCode: 'name_conflict' })
    expect(outcome(await make('notes.TXT', await gateway.folder(ann, fresh('other'))))).toBe('201')
  })

  test('gets a number with on_conflict=rename', async () => {
    const { gateway } = fixture
    const folderId = await gateway.folder(ann, fresh('numbers'))
    const names: unknown[] = []
    for (let copy = 0; copy < 4; copy++) {
      const file = await gateway.upload(ann, 'a.b.pdf', { folderId, onConflict: 'rename' })
      names.push((await gateway.send(ann, `/v1/files/${file}`)).body['name'])
    }
    expect(names).toEqual(['a.b.pdf', 'a.b (2).pdf', 'a.b (3).pdf', 'a.b (4).pdf'])
    const long = `${'\u00e4'.repeat(125)}.txt`
    await gateway.upload(ann, long, { folderId })
    const second = await gateway.upload(ann, long, { folderId, onConflict: 'rename' })
    const { body } = await gateway.send(ann, `/v1/files/${second}`)
    expect(body['name']).toBe(`${'\u00e4'.repeat(123)} (2).txt`)
  })

  test('may be set again on the node that has it', async () => {
    const { gateway } = fixture
    const folder = await gateway.folder(ann, fresh('own name'))
    const json = { name: fresh('OWN name').toLowerCase() }
    const path = `/v1/folders/${folder}`
    for (let time = 0; time < 2; time++) {
      expect(outcome(await gateway.send(ann, path, { method: 'PATCH', json }))).toBe('200')
    }
  })
})
