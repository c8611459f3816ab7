import { type OnnxNode, onnxModel, tensor } from './onnx-writer.ts'

/** A `tokenizer.json` of whole words, with the special tokens of BERT. */
export function wordTokenizer(words: readonly string[]) {
  const tokens = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', ...words]
  const special = (id: number) => ({
    id,
    content: tokens[id],
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })
  const token = (id: string, type_id: number) => ({ SpecialToken: { id, type_id } })
  const text = (id: string, type_id: number) => ({ Sequence: { id, type_id } })
  const template = (content: string) => ({
    [content]: { id: content, ids: [tokens.indexOf(content)], tokens: [content] },
  })
  return {
    version: '1.0',
    added_tokens: [0, 1, 2, 3].map(special),
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'WhitespaceSplit' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [token('[CLS]', 0), text('A', 0), token('[SEP]', 0)],
      pair: [
        ...[token('[CLS]', 0), text('A', 0), token('[SEP]', 0)],
        ...[text('B', 1), token('[SEP]', 1)],
      ],
      special_tokens: { ...template('[CLS]'), ...template('[SEP]') },
    },
    decoder: null,
    model: {
      type: 'WordLevel',
      unk_token: '[UNK]',
      vocab: Object.fromEntries(tokens.map((content, id) => [content, id])),
    },
  }
}

/**
 * A cross-encoder whose logit is a weight per word, summed over the document: enough to tell the
 * documents of a request apart by what they contain.
 */
export function wordScorer(weights: readonly number[]): Uint8Array {
  const nodes: OnnxNode[] = [
    { op: 'Gather', inputs: ['weights', 'input_ids'], output: 'scores' },
    { op: 'Cast', inputs: ['token_type_ids'], output: 'document', attributes: { to: 1 } },
    { op: 'Mul', inputs: ['scores', 'document'], output: 'counted' },
    {
      op: 'ReduceSum',
      inputs: ['counted', 'axes'],
      output: 'logits',
      attributes: { keepdims: 1 },
    },
  ]
  const varying = ['batch', 'tokens']
  return onnxModel({
    nodes,
    tensors: [
      tensor('weights', 'float', [weights.length], Float32Array.from(weights)),
      tensor('axes', 'int64', [1], BigInt64Array.of(1n)),
    ],
    inputs: ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => ({
      name,
      type: 'int64' as const,
      dims: varying,
    })),
    outputs: [{ name: 'logits', type: 'float', dims: ['batch', 1] }],
  })
}
