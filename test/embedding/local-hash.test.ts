import { expect, test } from 'bun:test'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { makeRequestContext } from '#test/support/generation.ts'

/** Indexes keep their vectors when the gateway is upgraded. */
test.each([
  ['ASCII', 'Invoices of the southern warehouse, 2026', 'VDjayvk1ZZk+Tyf+qIaVWg=='],
  ['other scripts', 'Das Übermaß 你好世界再见吧 𝒜𝒷𝒸𝒹𝒺 ελληνικά', 'dx9xKmF9KCB2yAfW48M2jQ=='],
])('a text of %s has the vector of earlier versions', async (_, text, digest) => {
  const { vectors } = await createLocalHashEmbedder().embed([text], {
    purpose: 'passage',
    context: makeRequestContext(),
  })
  expect(new Bun.CryptoHasher('md5').update(vectors[0] ?? '').digest('base64')).toBe(digest)
})
