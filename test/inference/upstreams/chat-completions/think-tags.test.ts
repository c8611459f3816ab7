import { expect, test } from 'bun:test'
import { createThinkTagSplitter } from '#inference/upstreams/chat-completions/think-tags.ts'

/** What each piece lets through, and what the end does: reasoning in brackets, then text. */
function split(...pieces: string[]): string[] {
  const splitter = createThinkTagSplitter()
  let shown = ''
  const reader = {
    reasoning: (text: string) => {
      if (text !== '') shown += `[${text}]`
    },
    text: (text: string) => {
      shown += text
    },
  }
  const take = () => {
    const taken = shown
    shown = ''
    return taken
  }
  const passed = pieces.map((piece) => {
    splitter.push(piece, reader)
    return take()
  })
  splitter.end(reader)
  return [...passed, take()]
}

test.each([
  ['whole tags', ['<think>Hm.</think>Hi'], ['[Hm.]Hi', '']],
  ['whitespace around the tags', [' <think>\n Hm. </think>\n Hi '], ['[Hm. ]Hi ', '']],
  ['reasoning', ['<think>I ', 'should', '</think>'], ['[I ]', '[should]', '', '']],
  ['text after the tags', ['<think>Hm.</think>', 'Hi', ' you'], ['[Hm.]', 'Hi', ' you', '']],
  ['text without tags', ['Hi', ' you', '<think>'], ['Hi', ' you', '<think>', '']],
  ['a tag in pieces', ['<th', 'ink>Hm.</thin', 'k>Hi'], ['', '[Hm.]', 'Hi', '']],
  ['a closing tag but its last character', ['<think>Hm.</think', '>Hi'], ['[Hm.]', 'Hi', '']],
  [
    'what only begins as a closing tag',
    ['<think>a<', 'b</', '</think>c'],
    ['[a]', '[<b]', '[</]c', ''],
  ],
  ['what only begins as an opening tag', ['<th', 'em>'], ['', '<them>', '']],
  ['an opening tag that breaks off', ['<thin'], ['', '<thin']],
  ['a closing tag that breaks off', ['<think>Hm.</thi'], ['[Hm.]', '[</thi]']],
  ['empty tags', ['<think>\n\n</think>\n\nHi'], ['Hi', '']],
  ['tags and nothing else', ['<think>', '</think>', '\n'], ['', '', '', '']],
])('%s', (_, pieces, passed) => {
  expect(split(...pieces)).toEqual(passed)
})

test('whitespace is held up to its limit', () => {
  const spaces = ' '.repeat(1_024)
  expect(split(spaces, '<think>Hm.')).toEqual(['', '[Hm.]', ''])
  expect(split(`${spaces} `, '<think>Hm.')).toEqual([`${spaces} `, '<think>Hm.', ''])
})
