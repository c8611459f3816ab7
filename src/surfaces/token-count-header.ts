/** Says who counted tokens, `upstream` to `estimate`; the body stays as its format has it. */
export const tokenCountHeader = 'x-sluice-token-count'
