import { expect, test } from 'bun:test'
import { expandG711 } from '#speech/dialects/g711.ts'
import { speechToolsExist, toolOutput } from '#test/support/speech-material.ts'

const codes = Uint8Array.from({ length: 256 }, (_, code) => code)
const raw = ['-t', 'raw', '-r', '8000', '-c', '1']

test.skipIf(!speechToolsExist).each([
  ['mulaw', 'mu-law'],
  ['alaw', 'a-law'],
] as const)('all codes of %s expand as another implementation expands them', (law, name) => {
  const pcm = ['-b', '16', '-e', 'signed']
  const command = ['sox', '-R', '-D', ...raw, '-b', '8', '-e', name, 'IN', ...raw, ...pcm, 'OUT']
  expect(expandG711(codes, law)).toEqual(toolOutput(command, codes))
})

test('silence is silent', () => {
  expect([...expandG711(Uint8Array.of(0xff, 0x7f), 'mulaw')]).toEqual([0, 0, 0, 0])
})
