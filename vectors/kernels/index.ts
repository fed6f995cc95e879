/** What the compiled module exports. See `vectors/kernels.ts` and `vectors/own-kernels.ts` for the callers. */

export { countAdmitted, countPassing, listAdmitted, setAdmission } from './admission';
export { nearestClusters } from './clusters';
export { setExamples } from './examples';
export { setGraph, setWalkScratch } from './graph';
export { addLinks, chooseLinks, healLinks, joinRow, measureRows, setJoinCodes, setJoinScratch } from './join';
export { maxSim } from './maxsim';
export { maxSimCodes } from './maxsim-codes';
export { maxSimTables, packTables } from './maxsim-tables';
export { fillTables, nearestCentroids } from './quantized';
export { keepNone, meetAll, nearestLeaders, setPairs } from './pairs';
export { addPostings, collectSums } from './postings';
export { printFloats, setPrintTables } from './print';
export { encodeRows, setRowCodes } from './row-codes';
export { gather, rescore, scan, scanAll, scoreEach } from './scan';
export { keepQuery, lastTouched, setMatrix, takeScored, takeScoredBytes } from './score';
export { addTokens, beginTokens, bestByTokens } from './tokens';
export { setWalkEnd, takeHops, walk, walkByExamples } from './walk';
