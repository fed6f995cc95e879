/**
 * Stop words of the languages whose lists `@orama/stopwords` lacks (its Slovenian one holds Russian words), and those that its
 * lists lack: single letters, and what is left of contractions when a tokenizer cuts them at the apostrophe.
 * Pronouns, articles, prepositions, conjunctions, auxiliary verbs and the commonest adverbs.
 */

import type { StopwordLanguage } from '../../protocols/model/text.js';

/** Words between spaces. */
export const OWN_STOPWORDS: { readonly [language in StopwordLanguage]?: string } = {
  azerbaijani: `və ya ilə amma ancaq lakin ki da də hə yox bəli bu o bunlar onlar mən sən biz siz mənim sənim sənin onun bizim sizin
    onların mənə sənə ona bizə sizə onlara məni səni onu bizi sizi onları məndə səndə onda burada orada bura ora belə elə nə kim hansı
    necə niyə harada hara haradan nəyə hər bütün heç bir iki çox az daha ən ilk son sonra əvvəl indi artıq hələ yalnız təkcə üçün kimi
    qədər görə haqqında üzrə qarşı başqa digər özü öz özüm var yoxdur idi imiş isə deyil olan olaraq olur oldu olub olacaq edir etdi
    edən çünki əgər həm həmin həmişə bəzi bəzən yenə yenidən`,
  basque: `eta edo baina baino ere ez bai ba da dira zen ziren naiz zara gara zarete nintzen zinen ginen du dut duzu dugu duzue dute zuen
    nuen zuten izan den dela direla dena diren ni zu hi gu zuek hura haiek bera berak beraiek nire zure gure haren beren bere hau hori
    hauek horiek hona hor han hemen honek horrek hark honen horren hala horrela honela zer nor non noiz nola zergatik zein zenbat bat
    batek baten batzuk batzuek beste bestea besteak guzti guztiak dena oso asko gutxi gehiago gehien gero orain lehen beti inoiz baita
    bezala arte artean baizik bestela beraz horregatik izango egin egiten dezake ditu ditut dituzte zuten zituen`,
  bengali: `এবং ও আর বা কিন্তু তবে যদি তাহলে কারণ যে যা যার যারা যাকে যখন তখন যেমন তেমন যেখানে সেখানে এখানে ওখানে এই সেই ওই এ সে তা তার তারা
    তাকে তাদের তিনি তাঁর তাঁরা তাঁকে তাঁদের আমি আমার আমাকে আমরা আমাদের তুমি তোমার তোমাকে তোমরা তোমাদের আপনি আপনার আপনাকে আপনারা আপনাদের ইনি উনি
    এর ওর এরা ওরা এদের ওদের কি কী কে কেন কোথায় কখন কীভাবে কোন কোনো কেউ কিছু সব সকল সবাই প্রতি অনেক খুব আরও আরো শুধু মাত্র না নয় নেই নি হ্যাঁ
    হয় হল হলো হবে হয়ে হতে হয়েছে হয়েছিল ছিল ছিলেন আছে আছেন থাকে থেকে করে করা করেন করতে করেছে করবে জন্য জন্যে সঙ্গে সাথে মধ্যে উপর উপরে নিচে
    পর পরে আগে দিয়ে দিকে দ্বারা কাছে মতো মত পর্যন্ত ছাড়া বিনা এক একটি একটা এখন আজ আবার তাই তো ই`,
  catalan: `a al als el la els les lo los un una uns unes de del dels d l en amb per pel pels perquè com que què qui quan on i o ni però sinó si
    no sí jo tu ell ella nosaltres vosaltres ells elles em et es ens us hi ho li se me te m t s n ne meu meva meus meves teu teva teus teves
    seu seva seus seves nostre nostra nostres vostre vostra vostres aquest aquesta aquests aquestes aquell aquella aquells aquelles
    això allò aquí allà molt molta molts moltes poc poca tot tota tots totes altre altra altres mateix mateixa cada cap algun alguna
    alguns algunes més menys també tampoc ja encara només ara abans després sempre mai entre sense sobre sota fins des contra durant
    és són era eren ser estar està estan ha han he has hem heu havia haver fa fer ser sigui va van vaig tan tant així doncs quin quina
    quins quines`,
  hebrew: `של את על אל עם אם או גם כי לא כן זה זו זאת אלה אלו הוא היא הם הן אני אתה אתם אתן אנחנו אנו שלי שלך שלו שלה שלנו שלכם שלהם שלהן
    אותי אותך אותו אותה אותנו אתכם אותם אותן לי לך לו לה לנו לכם להם להן בי בך בו בה בנו בכם בהם בהן מי מה מתי איפה איך למה מדוע כמה
    איזה איזו אילו כל כמו כך כדי כאשר כש אשר יש אין היה היתה הייתה היו יהיה תהיה יהיו להיות רק עוד מאוד יותר פחות אבל אלא אך לכן אז
    עכשיו כבר עד בין תחת מעל לפני אחרי אחר אחרת אחרים ללא בלי אצל דרך מן כאן שם הרי אולי תמיד שוב מאז לפי בגלל הנה`,
  hinglish: `a an the and or but if is am are was were be been being to of in on at by for with from as it its this that these those i me my we
    us our you your he him his she her they them their what which who whom when where why how not no so do does did have has had will
    would can could should main mai mein mujhe mera meri mere hum hume humein hamara hamari hamare tu tum tumhe tumhara tumhari tumhare
    aap aapko aapka aapki aapke woh wo vo voh us usko uska uski uske use un unko unka unki unke unhe yeh ye is isko iska iski iske ise
    in inko inka inki inke inhe ka ki ke ko se ne par pe tak aur ya lekin magar agar toh to ki kya kaun kab kahan kyun kyu kaise kitna
    kitne kitni jo jab jahan jaise hai hain ho hoon hu tha thi the hoga hogi honge raha rahi rahe kar karna karke karta karti karte kiya
    gaya gayi gaye ja jaa de diya liya le bhi hi na nahi nahin mat haan han sab kuch koi bahut bohot thoda abhi phir fir ab tab yahan
    wahan wala wali wale saath liye bina apna apni apne`,
  kazakh: `және мен сен сіз ол біз сендер сіздер олар менің сенің сіздің оның біздің олардың маған саған сізге оған бізге оларға мені сені
    сізді оны бізді оларды менде сенде онда бұл осы сол анау мынау осындай сондай мұндай бұлар кім не қандай қай қайсы қашан қайда қалай
    неге неліктен қанша неше барлық бәрі барша әр әрбір әркім ешкім ештеңе ешқандай біреу бірнеше бір екі көп аз өте ең тағы да де та те
    ма ме ба бе па пе мен бен пен немесе не болмаса бірақ алайда дегенмен өйткені себебі сондықтан егер үшін туралы дейін кейін соң бұрын
    арқылы сияқты секілді ретінде бойынша қарай басқа өз өзі өзім өзіміз емес жоқ бар иә еді екен болды болған болып болады болу болар
    деп деген енді қазір әлі тек ғана ғой тіпті міне`,
  slovene: `in ali a pa ampak toda vendar saj ker če da ne ni nisem nisi nismo niste niso sem si je smo ste so sva sta bi bil bila bilo bili bile
    biti bom boš bo bomo boste bodo jaz ti on ona ono mi vi oni one ono mene tebe njega nje nas vas njih meni tebi njemu njej nam vam njim
    me te ga jo jih mu ji jim se sebe sebi svoj svoja svoje moj moja moje tvoj tvoja tvoje njegov njegova njegovo njen njena njeno naš naša
    naše vaš vaša vaše njihov njihova njihovo ta to tega temu tem tej te ti tisti tista tisto tak taka tako kdo kaj kdaj kje kam kako zakaj
    koliko kateri katera katero ki kot kakor ko kadar v na po pri pod nad pred za z s k h o ob od do iz čez brez med proti zaradi skozi
    vse vsi vsa vsak vsaka vsako ves nekaj nekdo nič nihče noben nobena kak kakšen še že tudi le samo zelo bolj manj več najbolj zdaj sedaj
    potem nato tam tukaj tu sem vedno nikoli spet lahko naj mora morajo sicer torej zato`,
  tajik: `ва ё аммо вале лекин агар ки чи кӣ то бо бе аз дар ба бар барои то ҳам ҳамчун чун мисли дигар инчунин низ ман ту ӯ вай мо шумо онҳо
    маро туро ӯро моро шуморо онҳоро ин он инҳо онҳо ҳамин ҳамон чунин чунон кадом кай куҷо чаро чӣ чӣгуна чанд ҳар ҳама ҳеҷ баъзе як ду
    бисёр кам хеле боз ҳоло акнун пас пеш баъд баъди пеши зери болои миёни назди дохили аст нест буд буданд будам будем бошад бошанд
    мебошад мебошанд шуд шудан шуда мешавад кард карда кардан мекунад дорад доранд дошт ҳаст ҳастанд хоҳад не на ҳа бале фақат танҳо зеро
    чунки гарчанде балки худ худи`,
};

/** Words between spaces, beside those of the package. */
export const MORE_STOPWORDS: { readonly [language in StopwordLanguage]?: string } = {
  english: `a s t d m o y ll re ve don ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn needn shan shouldn wasn weren won wouldn
    just now`,
  french: 'y qu',
  romanian: 'a o e dintr printr s',
  swedish: 'å',
};
