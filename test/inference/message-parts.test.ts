import { expect, test } from 'bun:test'
import {
  argumentsObject,
  isMadeElsewhere,
  markLateSystem,
  reasoningText,
  splitHead,
  textOf,
  unreadableFile,
} from '#inference/message-parts.ts'
import type { RequestItem, Role } from '#inference/request.ts'
import { userMessage } from '#test/support/generation.ts'

test('a message of texts is their text, and holds nothing else', () => {
  const text = (said: string) => ({ type: 'text', text: said }) as const
  expect(textOf([text('one')])).toBe('one')
  expect(textOf([text('one'), text(' two'), { type: 'refusal', text: '!' }])).toBe('one two!')
  expect(textOf([])).toBe('')
  const image = { type: 'image', url: 'https://a.example/x.png', detail: null } as const
  expect(() => textOf([image])).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      message: 'Only a user message can hold image content.',
      param: 'input',
    }),
  )
})

test('the leading messages of the system are split off', () => {
  const of = (role: Role): RequestItem => ({ type: 'message', role, parts: [] })
  const [system, developer, user] = [of('system'), of('developer'), userMessage('Hi')]
  expect(splitHead([system, developer, user, system] as RequestItem[])).toEqual({
    head: [system, developer],
    rest: [user, system],
  } as never)
  const call: RequestItem = {
    type: 'tool-call',
    callId: 'c',
    name: 'look',
    form: 'function',
    arguments: '',
  }
  expect(splitHead([call, system])).toEqual({ head: [], rest: [call, system] })
  expect(splitHead([])).toEqual({ head: [], rest: [] })
})

test.each([
  ['function', '{"a":1}', { a: 1 }],
  ['function', ' ', {}],
  ['function', '{"a":', { input: '{"a":' }],
  ['function', '[1]', { input: '[1]' }],
  ['custom', '{"a":1}', { input: '{"a":1}' }],
] as const)('the arguments of a %s call %p are an object', (form, text, object) => {
  const call = { type: 'tool-call', callId: 'c', name: 'look', form, arguments: text } as const
  expect(argumentsObject(call)).toEqual(object)
})

test('reasoning is its text, or its summary', () => {
  expect(reasoningText({ text: 'Hm.', summary: ['So.'] })).toBe('Hm.')
  expect(reasoningText({ text: '', summary: ['So.', 'Thus.'] })).toBe('So.\n\nThus.')
})

test('reasoning is made elsewhere only where its maker is known', () => {
  expect(isMadeElsewhere({}, 'u/m')).toBe(false)
  expect(isMadeElsewhere({ sealedBy: 'u/m' }, 'u/m')).toBe(false)
  expect(isMadeElsewhere({ sealedBy: 'u/n' }, 'u/m')).toBe(true)
})

test('a late instruction of the system is marked', () => {
  expect(markLateSystem('Be kind.')).toBe('[System instruction]\nBe kind.')
})

test.each([
  ['a.pdf', true, 'The model cannot fetch the file a.pdf from a URL; send its content.'],
  [null, true, 'The model cannot fetch a file from a URL; send its content.'],
  [null, false, 'The model does not accept files, but the input contains a file.'],
])('the file %p that a model cannot read is named', (filename, canRead, message) => {
  const error = unreadableFile({ type: 'file', data: null, url: null, filename }, canRead)
  expect(error).toMatchObject({ kind: 'invalid_request', param: 'input', message })
})
