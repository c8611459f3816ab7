import { foldText } from '#lib/fold-text.ts'
import { queriedWords } from '#retrieval/index/keyword-text.ts'

/** Frequent words of Czech, German, Greek, English, French and Slovak, which select nothing. */
const stopWordList = `
a aby aj ako ale ani ano az bez bude by byl byla bylo co do ho i jak jako je jeho jen jsem jsou k
kde kdy kdo ktera ktere ktery kto mezi na nad nebo nez o od po pod pre pri pro proto sa se si so
som su ta tak tam to tu ty u uz v ve vo z za ze
aber als am an auf aus bei bin bis das dass dem den der des die du ein eine einem einen einer er es
fur hat ich ihr im in ist mit nach nicht noch oder sein sich sie sind uber um und von vor war was
wer wie wir wird wo zu zum zur
αλλα απο αυτο για δεν ειναι εγω εδω ενα ενας εχει η θα και κατα με μια να ο οι οπως οταν οτι που πως
σε στη στην στο στον τα τη την της τι το τον του των
about all also and are as at be been but can did does for from had has have how if into is it its
may more my no not of on one or our should than that the their them then there these they this was
we were what when where which who will with would you your
au aux avec ce ces cette comme dans de des du elle en est et eux il ils je la le les leur lui mais
ne nous ou par pas plus pour quand que quel quelle qui sans ses son sont sur un une vous
`

const stopWords = new Set(foldText(stopWordList).split(/\s+/))
/** Each keyword costs an index lookup. */
const keywordsMax = 64

/** The words of a query for full text search, folded like the index; stop words only if there are no others. */
export function keywordsOf(query: string): string {
  const all = queriedWords(query.replaceAll('\0', ' ').toWellFormed()).trim().split(/\s+/)
  const keywords = all.filter((word) => !stopWords.has(word.replace(/[^\p{L}\p{N}]+/gu, '')))
  return (keywords.length > 0 ? keywords : all).slice(0, keywordsMax).join(' ')
}

/**
 * How many of the keywords a passage must contain: all, all but one, any. Ranking dominates the cost
 * of keyword search; common words are in many passages, but few passages contain all of them.
 */
export type KeywordTier = 'all' | 'almost' | 'any'

/** The query of tier `almost` repeats the keywords once for each of them. */
export const almostAllKeywordsMax = 8

/** The tiers to try, narrowest first. */
export function keywordTiers(keywords: string): readonly KeywordTier[] {
  const count = keywords.split(' ').length
  if (count === 1) return ['any']
  return [count > 2 && count <= almostAllKeywordsMax ? 'almost' : 'all', 'any']
}
