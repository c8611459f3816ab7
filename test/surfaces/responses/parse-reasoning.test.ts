import { describe, expect, test } from 'bun:test'
import { createSealerOf } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { testSeals } from '#test/support/sealing.ts'
import { parse, refusalOf } from './parsing.ts'

const seal = testSeals.reasoning.seal
const user = { role: 'user', content: 'Go on.' }
const reasoning = (fields: object) => ({ type: 'reasoning', id: 'rs_1', summary: [], ...fields })
const itemOf = (fields: object) => parse({ input: [reasoning(fields), user] }).request.items[0]

describe('replayed encrypted reasoning', () => {
  test('is opened, with the payload of the upstream and its maker', () => {
    expect(
      itemOf({ encrypted_content: seal({ text: 'Hm.', payload: 'gAAA', maker: 'native/m' }) }),
    ).toEqual({
      type: 'reasoning',
      summary: [],
      text: 'Hm.',
      sealed: 'gAAA',
      sealedBy: 'native/m',
    })
    expect(
      itemOf({
        summary: [{ type: 'summary_text', text: 'In short.' }],
        encrypted_content: seal({ text: 'Hm.', payload: null, maker: null }),
      }),
    ).toEqual({ type: 'reasoning', summary: ['In short.'], text: 'Hm.' })
  })

  test('takes precedence over plain text', () => {
    const content = [{ type: 'reasoning_text', text: 'open' }]
    const [full, bare] = ['Hm.', ''].map((text) => seal({ text, payload: 'p', maker: 'a/b' }))
    expect(itemOf({ content, encrypted_content: full })).toMatchObject({ text: 'Hm.' })
    expect(itemOf({ content, encrypted_content: bare })).toMatchObject({ text: 'open' })
  })

  test('of another service is forwarded', () => {
    expect(itemOf({ encrypted_content: 'gAAA' })).toEqual({
      type: 'reasoning',
      summary: [],
      text: '',
      sealed: 'gAAA',
    })
  })

  test('that was altered, or belongs to another user, is refused', () => {
    const ours = seal({ text: 'Hm.', payload: null, maker: null })
    const sealer = createSealerOf(['a-secret-for-tests-of-seals-0123456'])
    const theirs = sealsOf(sealer, 'somebody else').reasoning.seal({
      text: 'Hm.',
      payload: null,
      maker: null,
    })
    for (const encrypted_content of [`${ours.slice(0, -4)}AAAA`, theirs]) {
      expect(refusalOf({ input: [user, reasoning({ encrypted_content })] })).toMatchObject({
        status: 400,
        wireCode: 'invalid_encrypted_content',
        param: 'input[1].encrypted_content',
      })
    }
  })
})
