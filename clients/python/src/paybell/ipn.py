"""The fields of an IPN, by the names of the specification's tables."""

from __future__ import annotations

from typing import TypedDict


class SettlementEntry(TypedDict):
    reqId: str
    refNo: str


class _CardIpn(TypedDict):
    aid: str
    amount: str
    appName: str
    approveCode: str
    batchNo: str
    billId: str
    cardHolder: str
    cardNumber: str
    cardScheme: str
    currency: str
    deviceId: str
    expDate: str
    extraData: str
    id: str
    invoiceNo: str
    isoResponseCode: str
    merchantAddress: str
    merchantId: str
    merchantName: str
    merchantTransId: str
    mid: str
    paymentType: str
    refId: str
    reqId: str
    status: str
    swipeType: str
    tc: str
    tid: str
    traceNo: str
    transDateTime: str
    transaction_type: str
    signature: str


class CardIpn(_CardIpn, total=False):
    """The fields below come only with `fields: "extended"`."""

    command: str
    originalId: str
    originalReqId: str


class _SettlementIpn(TypedDict):
    batchNo: str
    callbackUrl: str
    deviceId: str
    extraData: str
    id: str
    merchantTransId: str
    mid: str
    quantity: str
    reqId: str
    saleQuantity: str
    saleTotalAmount: str
    status: str
    tid: str
    totalAmount: str
    transaction_time: str
    transaction_type: str
    voidQuantity: str
    voidTotalAmount: str
    settlementList: list[SettlementEntry]
    signature: str


class SettlementIpn(_SettlementIpn, total=False):
    """The fields below come only with `fields: "extended"`."""

    command: str
    currency: str
