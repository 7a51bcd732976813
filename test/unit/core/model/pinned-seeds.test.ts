import { expect, test } from 'vitest'
import { playOne } from '../../../model/chunk.js'

test.each([
  ['an idle falls while a hold is about to give way to the floor', 7_002_257],
  ['what was found as wanted is held, also under a change of another call', 941_147],
  ['a first hold is asked for by a look of its own door', 7_000_451],
  ['a lost hold below one that was taken is not shown by it', 7_004_489],
  ['an undo beside ready() waits for what may still come', 7_003_422],
  ['a ticket means its member, not one of before', 7_013_906],
  ['a ticket means more than what its member once was set to', 7_010_172],
  ['a ticket with the higher state of two is taken over', 7_010_254],
  ['a hold that an operator opened asks the floor again', 700_003_289],
])('%s, seed %i', async (_, seed) => {
  expect(await playOne(seed)).toEqual([])
})
