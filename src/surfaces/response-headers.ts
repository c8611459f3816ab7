/** The response header that says how tokens were counted. */
export const tokenCountHeader = 'x-sluice-token-count'

export const tokenCountDescription =
  'How the tokens were counted, most accurate first: `upstream`, `tokenizer-file` (the tokenizer of the model), `tokenizer` (built-in), `estimate`.'

/** The code of the `warning` of a response without streaming. */
export const warningHeader = 'x-sluice-warning'
