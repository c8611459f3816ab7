/** Says who counted tokens, `upstream` to `estimate`; the body stays as its format has it. */
export const tokenCountHeader = 'x-sluice-token-count'

/** The same for readers of the document. */
export const whoCounted =
  'Who counted, the most exact first: `upstream`, `tokenizer-file` (that of the model), `tokenizer` (the built-in one), `estimate`.'
